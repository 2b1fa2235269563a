"""Planted faults of the service and its clients: a part of the list of `make mutants`."""

from __future__ import annotations

from planted_fault import Mutant

ACCESS, ROWS = "tests/test_serve_access.py", "tests/test_serve_rows.py"
ARTIFACTS, SECURITY = "tests/test_serve_artifacts.py", "tests/test_serve_security.py"
CLIENT = "tests/test_client.py"
TOKEN = f"{ACCESS}::test_a_token_that_is_not_whole_and_valid_opens_nothing"

SERVICE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a token opens what its scopes do not",
        "tftune/serve/service.py",
        "if not caller.may(scope):",
        "if False:",
        f"{ACCESS}::test_every_route_needs_its_scope[sqlite]",
    ),
    Mutant(
        "everybody reads",
        "tftune/serve/service.py",
        'if scope == "read" and service.settings.anonymous_read:',
        'if scope == "read":',
        f"{ACCESS}::test_every_route_needs_its_scope[sqlite]",
    ),
    Mutant(
        "an expired token opens",
        "tftune/serve/tokens.py",
        'if row["expires"] is not None and row["expires"] <= now():',
        "if False:",
        f"{TOKEN}[sqlite-expired]",
    ),
    Mutant(
        "a revoked token opens",
        "tftune/serve/tokens.py",
        'if row["revoked"]:',
        "if False:",
        f"{TOKEN}[sqlite-revoked]",
    ),
    Mutant(
        "the number of a token is enough",
        "tftune/serve/tokens.py",
        "if not hmac.compare_digest(_hash(secret), known) or row is None:",
        "if row is None:",
        f"{TOKEN}[sqlite-other]",
    ),
    Mutant(
        "secrets are stored as they are",
        "tftune/serve/tokens.py",
        'return sha256(secret.encode(errors="replace")).hexdigest()',
        "return secret",
        f"{ACCESS}::test_a_token_is_stored_as_its_hash_alone[sqlite]",
    ),
    Mutant(
        "a node speaks for another",
        "tftune/serve/api_rows.py",
        "node = caller.node_of(_node(request))",
        'node = _node(request) or "unnamed"',
        f"{ACCESS}::test_a_token_of_a_node_speaks_for_no_other[sqlite]",
    ),
    Mutant(
        "a row that comes twice is two rows",
        "tftune/serve/rows.py",
        '"id": trial.id, "run": trial.run,',
        '"id": f"{trial.id}{now()}", "run": trial.run,',
        f"{ROWS}::test_rows_are_stored_once[sqlite-False]",
    ),
    Mutant(
        "half an upload is stored",
        "tftune/serve/rows.py",
        "if self._unpack is not None and not self._unpack.eof:",
        "if False:",
        f"{ROWS}::test_a_cut_upload_stores_nothing[sqlite]",
    ),
    Mutant(
        "what a body unpacks to has no bound",
        "tftune/serve/rows.py",
        "self._unpacked += len(text)",
        "self._unpacked = 0",
        f"{SECURITY}::test_a_bomb_is_not_unpacked",
    ),
    Mutant(
        "a body without a length has no bound",
        "tftune/serve/guards.py",
        "if self.taken > self.most_bytes:",
        "if False:",
        f"{SECURITY}::test_a_gigabyte_without_a_length_is_cut_off[/v1/select]",
    ),
    Mutant(
        "headers may take for ever",
        "tftune/serve/server.py",
        "self._deadline = self.loop.call_later(self.headers_s, self._late)",
        "pass",
        f"{SECURITY}::test_headers_that_do_not_come_are_not_waited_for",
    ),
    Mutant(
        "who has an artifact gets it again",
        "tftune/serve/api_artifacts.py",
        "if _has(request, digest):",
        "if False:",
        f"{ARTIFACTS}::test_an_artifact_is_served_as_its_bytes_with_its_digest[sqlite]",
    ),
    Mutant(
        "a candidate becomes stable",
        "tftune/serve/gate.py",
        'if to == "stable" and at != "canary":',
        "if False:",
        f"{ARTIFACTS}::test_promotion_needs_each_step_and_a_second_node[sqlite]",
    ),
    Mutant(
        "a node that measured the rows confirms them",
        "tftune/serve/gate.py",
        "if nodes.get(node, 0) <= SHARE * total]",
        "]",
        f"{ARTIFACTS}::test_a_node_of_half_the_rows_is_a_second_node_and_of_most_is_not",
    ),
    Mutant(
        "text of nodes is HTML",
        "tftune/serve/pages.py",
        "autoescape=select_autoescape(),",
        "autoescape=False,",
        "tests/test_serve_pages.py::test_what_nodes_say_is_escaped[sqlite]",
    ),
    Mutant(
        "the digest that the service announced is not held",
        "tftune/client/pull.py",
        "if given not in known:",
        "if False:",
        f"{CLIENT}::test_what_is_forged_never_serves",
    ),
    Mutant(
        "a signature by nobody is taken",
        "tftune/client/pull.py",
        "if self.public_key and (why := why_not_signed(content, signature, self.public_key)):",
        'if why := "":',
        f"{CLIENT}::test_a_pinned_key_refuses_what_it_did_not_sign",
    ),
    Mutant(
        "a name leads out of the cache",
        "tftune/client/cache.py",
        'if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}", part):',
        "if False:",
        f"{CLIENT}::test_no_name_leads_out_of_the_folder",
    ),
    Mutant(
        "one rank swaps alone",
        "tftune/hot_swap.py",
        "if reason is None and isinstance(new, Selector):",
        "if isinstance(new, Selector):",
        "tests/test_swap.py::test_every_rank_swaps_or_none_does",
    ),
)
