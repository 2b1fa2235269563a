"""The public face of tftune."""
