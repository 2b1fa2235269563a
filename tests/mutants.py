"""Planted faults, each with the test that must fail: the list of `make mutants`."""

from __future__ import annotations

from mutants_of_kernels import KERNEL_MUTANTS
from mutants_of_service import SERVICE_MUTANTS
from mutants_of_tuner import TUNER_MUTANTS
from planted_fault import Mutant

GRADIENTS = "tests/test_gradients.py"

MUTANTS: tuple[Mutant, ...] = (
    # taxes
    Mutant(
        "rows of stage tax reach training",
        "models/dataset.py",
        "t.stage in stages and not t.condition",
        't.stage in (*stages, "tax")',
        "tests/test_taxes.py::test_rows_reach_neither_training_nor_tables_nor_searches",
    ),
    Mutant(
        "Shapley shares leave out the arm with all factors but one",
        "studies/taxes/split.py",
        "for size in range(len(others) + 1)",
        "for size in range(len(others))",
        "tests/test_taxes.py::test_shapley_shares_add_up_and_do_not_depend_on_names",
    ),
    Mutant(
        "the late rank is not late",
        "studies/taxes/bench.py",
        "us if workspace.rank == workspace.world - 1 else 0",
        "0",
        "tests/test_tax_arms.py::test_the_last_rank_is_late_and_no_other",
    ),
    Mutant(
        "the launch of memory's copy counts as memory",
        "studies/taxes/arms.py",
        "kernels=1 + (gap.kernels if LAUNCH in paid else 0)",
        "kernels=(MEMORY in paid) + (gap.kernels if LAUNCH in paid else 0)",
        "tests/test_tax_arms.py::test_of_the_cube_no_factor_but_launch_adds_a_kernel",
    ),
    Mutant(
        "who waits for all waits for none",
        "kernels/device/waits.py",
        "for first in tl.range(0, slots, SLOTS, num_stages=1):",
        "for first in tl.range(0, 0, SLOTS, num_stages=1):",
        "tests/test_tax_arms.py::"
        "test_a_traced_kernel_reads_the_clock_around_its_waits_and_no_other_does"
        "[all_gather_gemm-sm_90]",
    ),
    # tftune
    Mutant(
        "an eager layer runs the winner of graphs",
        "tftune/operator.py",
        "selection = tftune.select_kernel(shape, mode)",
        'selection = tftune.select_kernel(shape, "graph")',
        "tests/test_ops.py::test_a_layer_runs_what_is_selected_for_its_mode",
    ),
    Mutant(
        "Dynamo traces what computes an operator",
        "tftune/operator.py",
        "torch.compiler.disable(run)",
        "run",
        "tests/test_ops.py::test_dynamo_leaves_an_operator_alone_that_a_skipped_frame_calls",
    ),
    Mutant(
        "the newest plan is dropped, not the oldest",
        "kernels/runtime/plan.py",
        "oldest = next(iter(plans))",
        "oldest = next(reversed(plans))",
        "tests/test_ops.py::test_of_many_shapes_the_oldest_plans_go_and_the_log_says_so",
    ),
    Mutant(
        "programs of two split_k count in the same words",
        "kernels/all_gather_gemm/host.py",
        "f\"arrivals of {config['split_k']}\"",
        '"arrivals"',
        "tests/test_buffers.py::test_calls_of_two_splits_share_no_counters",
    ),
    Mutant(
        "the gradient of a norm forgets that of the new residual",
        "tftune/gradients.py",
        "+ grad[1].float()",
        "",
        f"{GRADIENTS}::test_gradients_are_those_of_the_library[2-bsp-bf16]",
    ),
    Mutant(
        "the gradient of a norm forgets its epsilon",
        "tftune/gradients.py",
        "keepdim=True) + ctx.eps)",
        "keepdim=True) + 1e-6)",
        f"{GRADIENTS}::test_gradients_are_those_of_the_library[2-bsp-bf16]",
    ),
    Mutant(
        "a norm of another epsilon runs the plan of the first",
        "tftune/operator.py",
        "self.name, words, numbers, config,",
        "self.name, words, config,",
        "tests/test_ops.py::"
        "test_a_layer_runs_what_is_selected_and_torch_compile_sees_one_operator[True]",
    ),
    Mutant(
        "a sub-group gathers over all ranks",
        "tftune/gathered.py",
        "group=place.group)",
        "group=None)",
        f"{GRADIENTS}::test_tensor_parallel_halves_do_not_disturb_each_other[bsp]",
    ),
    Mutant(
        "a call whose weight is frozen has no gradient",
        "tftune/operator.py",
        "for operand in operands if operand",
        "for operand in operands[1:] if operand",
        f"{GRADIENTS}::test_without_a_gradient_nothing_changes_and_what_has_none_says_so",
    ),
    # tftune/graph_pass
    Mutant(
        "rows of a batch stay in the order of the ranks",
        "tftune/graph_pass/rewrite.py",
        "return self.call(aten.reshape.default, turned, [-1, columns])",
        "return self.call(aten.reshape.default, apart, [-1, columns])",
        "tests/test_compile_pass_ranks.py::test_kernels_give_the_same_numbers",
    ),
    Mutant(
        "a collective is in flight beside a kernel",
        "tftune/graph_pass/flight.py",
        "kernel.prepend(wait)",
        "pass",
        "tests/test_compile_pass_faults.py"
        "::test_no_collective_of_any_kind_is_in_flight_beside_a_kernel",
    ),
    Mutant(
        "a slice of joined columns is taken for a whole tensor",
        "tftune/graph_pass/rewrite.py",
        "{new for old, new in self.puts if _differ(old, new)}",
        "set()",
        "tests/test_compile_pass.py::test_a_slice_of_joined_columns_is_no_operand",
    ),
    Mutant(
        "code that was compiled for another artifact is used again",
        "tftune/graph_pass/inductor.py",
        "            return selector.identity()\n",
        "            return None\n",
        "tests/test_compile_pass.py::test_uuid_holds_what_compiled_code_rests_on",
    ),
    Mutant(
        "a norm forgets its epsilon",
        "tftune/graph_pass/rewrite.py",
        "given = residual, weight, self.mode, norm.eps",
        "given = residual, weight, self.mode, 1e-6",
        "tests/test_compile_pass.py::test_a_norm_keeps_its_epsilon",
    ),
    Mutant(
        "eps of an all-reduce is ignored by the kernels",
        "kernels/all_reduce/host.py",
        "M=shape.m, eps=eps",
        "M=shape.m, eps=EPSILON",
        "tests/test_contract_all_reduce.py::test_eps_is_that_of_the_call",
    ),
    Mutant(
        "eps of an all-reduce is ignored by BSP's norm",
        "kernels/all_reduce/host.py",
        '{"eps": eps}',
        '{"eps": EPSILON}',
        "tests/test_contract_all_reduce.py::test_eps_is_that_of_the_call",
    ),
    Mutant(
        "the last chunk of a reduce-scatter is left out",
        "kernels/gemm_reduce_scatter/variants/bsp_chunked.py",
        "range(chunks + 1)",
        "range(chunks)",
        "tests/test_contract_gemm_reduce_scatter.py::test_chunks_are_right",
    ),
    Mutant(
        "chunks of a reduce-scatter go over the first one",
        "kernels/gemm_reduce_scatter/variants/bsp_chunked.py",
        "c[low:high], sent",
        "c[: high - low], sent",
        "tests/test_contract_gemm_reduce_scatter.py::test_chunks_are_right",
    ),
    Mutant(
        "the owner of a chunk gets rows of other owners",
        "kernels/gemm_reduce_scatter/variants/bsp_chunked.py",
        "a.view(world, rows, -1)",
        "a.view(rows, world, -1).transpose(0, 1)",
        "tests/test_contract_gemm_reduce_scatter.py::test_chunks_are_right",
    ),
    # models and db
    Mutant(
        "configs of a changed kernel are served",
        "models/chain.py",
        "        if here == measured:\n",
        "        if True:\n",
        "tests/test_layout.py::test_what_was_the_fastest_with_another_source_does_not_answer",
    ),
    Mutant(
        "what was confirmed is forgotten with the memory of answers",
        "models/selector.py",
        "        self._confirmed[mode, shape.key] = self._answers",
        "        self._answers",
        "tests/test_shortlist.py::TestConfirm::test_it_outlives_the_memo",
    ),
    Mutant(
        "ranks that do not agree forget their machine",
        "models/selector.py",
        "bsp_only=reason, machine=self.machine,",
        "bsp_only=reason,",
        "tests/test_selector.py::test_restricted_to_bsp_it_still_compares_its_machine",
    ),
    Mutant(
        "the model plays tiles as they are dealt, whatever xcds is",
        "kernels/core/tile_order.py",
        "number = by_die(program, self.programs, self.xcds) + turn * self.programs",
        "number = program + turn * self.programs",
        "tests/test_l2_gemm.py::test_the_order_that_is_played_is_the_kernels_own",
    ),
    Mutant(
        "a persistent unit takes whatever comes next",
        "models/l2.py",
        "[iter(work[unit :: die.units]) for unit in range(die.units)]",
        "[iter(work)] * die.units",
        "tests/test_l2_gemm.py::test_a_persistent_unit_keeps_its_own_programs",
    ),
    Mutant(
        "the model is taken to be exact",
        "db/discount.py",
        "MODEL_ERROR = 1.44",
        "MODEL_ERROR = 1.0",
        "tests/test_dataset.py::test_a_modelled_speed_up_counts_above_what_the_model_errs_by",
    ),
    Mutant(
        "training sees held-out shapes outside of the matrix",
        "models/evaluate.py",
        "    folds = [(learned, asked) for learned, judged in folds",
        "    folds = [([*learned, *(set(judged) - matrix)], asked) for learned, judged in folds",
        "tests/test_evaluate.py::test_what_is_held_out_is_unseen_outside_of_the_matrix_too",
    ),
    Mutant(
        "a form of BSP loses nothing where it was not measured",
        "models/portfolio.py",
        "UNTRIED = 1.5",
        "UNTRIED = 1.0",
        "tests/test_dataset.py::test_a_form_of_bsp_loses_much_where_it_was_never_measured",
    ),
    Mutant(
        "a failed import leaves a part of its rows",
        "db/store.py",
        "            added = sum(self._add_trial(trial) for trial in trials)\n",
        "        added = 0\n"
        "        for trial in trials:\n"
        "            with self._writing():\n"
        "                added += self._add_trial(trial)\n",
        "tests/test_store.py::TestFiles::test_rows_without_their_run_import_nothing",
    ),
    Mutant(
        "an interval of 95 % is one of 90 %",
        "db/trial.py",
        "        if 2 * tail > 1 - confidence:",
        "        if tail > 1 - confidence:",
        "tests/test_trial.py::test_median_interval_takes_the_ranks_of_the_published_table",
    ),
    *TUNER_MUTANTS,
    *KERNEL_MUTANTS,
    # tftune/serve and tftune/client
    *SERVICE_MUTANTS,
)
