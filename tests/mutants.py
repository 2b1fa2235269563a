"""Planted faults, each with the test that must fail: the list of `make mutants`."""

from __future__ import annotations

from mutants_of_service import SERVICE_MUTANTS
from planted_fault import Mutant

NODE, SEARCH = "tests/test_node_requests.py", "tests/test_search_studies.py"
GRADIENTS = "tests/test_gradients.py"
FINALS = "tests/test_search_finals.py"
ORDER, COPIES = "tests/test_memory_order_counters.py", "tests/test_copy_engine.py"
FINISH = f"{ORDER}::test_the_last_program_to_leave_comes_behind_all_others"
PARTS = f"{ORDER}::test_a_part_is_in_memory_before_it_is_counted"
MEETING = f"{ORDER}::test_ranks_that_meet_release_and_acquire_at_system_scope"
STREAMS = f"{COPIES}::test_side_streams_follow_the_epoch_and_the_call_ends_behind_their_copies"

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
        "kernels/core/taxes.py",
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
        "found = tftune.select_kernel(shape, mode)",
        'found = tftune.select_kernel(shape, "graph")',
        "tests/test_ops.py::test_a_layer_runs_what_is_selected_for_its_mode",
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
        "tests/test_all_reduce.py::"
        "test_a_layer_runs_what_is_selected_and_torch_compile_sees_one_operator[two_shot]",
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
    # tuner: the node bench and its ranks
    Mutant(
        "the check asks the best rank",
        "tuner/bench/node.py",
        "        worst = max(error for error, _ in replies)\n",
        "        worst = min(error for error, _ in replies)\n",
        f"{NODE}::test_what_one_rank_computes_wrong_is_wrong",
    ),
    Mutant(
        "verification asks the best rank",
        "tuner/bench/node.py",
        "        if max(timed for timed, _ in replies) <= replies[0][1]:",
        "        if min(timed for timed, _ in replies) <= replies[0][1]:",
        f"{NODE}::test_what_one_rank_computes_wrong_is_wrong",
    ),
    Mutant(
        "a slower config takes the place of the best so far",
        "tuner/bench/node.py",
        "max(low, self._best.get((shape, mode), 1.0))",
        "low",
        "tests/test_node.py::test_what_cannot_win_beside_the_best_so_far_is_stopped",
    ),
    Mutant(
        "graphs of the last shape are kept",
        "tuner/bench/worker.py",
        "            self._graphs.clear()\n",
        "",
        f"{NODE}::test_what_belongs_to_a_shape_is_freed_with_it",
    ),
    Mutant(
        "operands of the last shape are kept",
        "tuner/bench/worker.py",
        "            self._references = self._operands = None\n",
        "",
        f"{NODE}::test_what_belongs_to_a_shape_is_freed_with_it",
    ),
    Mutant(
        "the round that warms up counts",
        "tuner/bench/clock.py",
        "    return [times[1:] for times in samples]\n",
        "    return [times[:-1] for times in samples]\n",
        "tests/test_clock.py::test_the_first_round_of_each_clock_warms_up_and_does_not_count",
    ),
    Mutant(
        "ranks do not start a timed replay together",
        "tuner/bench/clock.py",
        "            start_together()\n",
        "",
        "tests/test_clock.py::test_a_graph_runs_untimed_before_it_counts_after_the_barrier",
    ),
    Mutant(
        "the check takes the mean row, not the worst",
        "tuner/bench/check.py",
        "/ scale).max().item()",
        "/ scale).mean().item()",
        "tests/test_check.py::test_a_few_wrong_elements_of_one_row_are_seen",
    ),
    Mutant(
        "timed calls are not verified",
        "tuner/bench/node.py",
        "            wrong = self._verify(world, shape, config)\n",
        "            wrong = None\n",
        f"{NODE}::test_a_config_whose_timed_calls_compute_wrong_numbers_is_wrong",
    ),
    Mutant(
        "timed calls of finalists are not verified",
        "tuner/bench/node.py",
        "        if wrong := self._verify(world, shape, config):\n",
        "        if wrong := None:\n",
        f"{NODE}::test_a_finalist_whose_timed_calls_compute_wrong_numbers_is_wrong",
    ),
    Mutant(
        "a finalist is verified by what the last one computed",
        "tuner/bench/node.py",
        "        self._slowest(world, shape, [config], mode, 1)\n",
        "",
        f"{NODE}::test_each_finalist_is_timed_alone_once_more_before_it_is_verified",
    ),
    Mutant(
        "a wrong result does not end its world",
        "tuner/bench/node.py",
        "        world.kill()\n        self._broke()\n        worst, tolerance",
        "        worst, tolerance",
        f"{NODE}::test_a_config_whose_timed_calls_compute_wrong_numbers_is_wrong",
    ),
    Mutant(
        "the deadline of timing is doubled",
        "tuner/bench/node.py",
        "self._deadlines.time * max(1.0, len(configs) / 2)",
        "self._deadlines.time * max(2.0, len(configs))",
        f"{NODE}::test_the_deadline_of_timing_is_for_two_configs_and_grows_with_more",
    ),
    Mutant(
        "the node bench never has a graph dropped",
        "tuner/bench/node.py",
        '        world.request("forget", (shape, config, mode), self._deadlines.prepare)\n',
        "        pass\n",
        f"{NODE}::test_the_graph_of_each_fused_config_is_dropped_and_bsp_keeps_its_own",
    ),
    Mutant(
        "a rank keeps every graph",
        "tuner/bench/worker.py",
        "            self._graphs.pop(config, None)\n",
        "            pass\n",
        f"{NODE}::test_a_rank_drops_the_graph_that_it_is_told_to_forget",
    ),
    Mutant(
        "the output keeps an earlier result before timed calls",
        "tuner/bench/worker.py",
        '        operands[0][-1].fill_(float("nan"))\n',
        "",
        f"{NODE}::test_what_timed_calls_did_not_write_is_no_result",
    ),
    Mutant(
        "an eager config is verified by another one's output",
        "tuner/bench/worker.py",
        "            plans[-1](*operands[0])",
        "            plans[0](*operands[0])",
        f"{NODE}::test_eager_calls_are_verified_by_what_the_last_config_wrote",
    ),
    Mutant(
        "no rank is late in the check",
        "tuner/bench/check.py",
        "                delay(workspace)\n",
        "                pass\n",
        "tests/test_check.py::test_each_rank_is_late_in_two_calls_in_a_row",
    ),
    # tuner: the search
    Mutant(
        "resumed rows are not told to the sampler",
        "tuner/search/search_stage.py",
        "            track.tell(trial)\n            if trial.id not in stored:\n",
        "            if trial.id not in stored:\n",
        f"{SEARCH}::test_a_resumed_search_tells_its_sampler_of_every_row_before_it_asks",
    ),
    Mutant(
        "the seed of the command is ignored by the sampler",
        "tuner/search/search_stage.py",
        'f"{name}/{self.seed}"',
        'f"{name}"',
        f"{SEARCH}::test_the_seed_of_a_sampler_is_of_the_command_and_of_the_place",
    ),
    Mutant(
        "the seed of the command is ignored by the model's part",
        "tuner/search/opening.py",
        "np.random.default_rng(self._seed)",
        "np.random.default_rng(0)",
        f"{SEARCH}::test_the_model_is_asked_about_a_part_that_changes_with_the_seed",
    ),
    Mutant(
        "winners come of the farthest layers",
        "tuner/search/warm_start.py",
        "key=lambda layer: _between_layers(shape, layer[0]))",
        "key=lambda layer: -_between_layers(shape, layer[0]))",
        "tests/test_warm_start.py::test_one_below_and_one_above_of_the_nearest_layers",
    ),
    Mutant(
        "every config is a rival of the winner",
        "tuner/search/session.py",
        " if evidence.overlap(speedups[config], speedups[ranked[0]])]",
        "]",
        "tests/test_rows.py::test_rivals_are_what_noise_cannot_tell_from_the_winner",
    ),
    Mutant(
        "no row corrects the model for the next shape",
        "tuner/search/opening.py",
        "            correction.learn(self._rows.searched(place).values())\n",
        "            pass\n",
        f"{SEARCH}::test_the_rows_of_each_shape_correct_the_model_for_the_next",
    ),
    Mutant(
        "winners are measured again in the world of the search",
        "tuner/search/final_stage.py",
        "                    rows.bench.restart()\n",
        "                    pass\n",
        f"{FINALS}::test_the_final_stage_measures_the_same_portfolio_everywhere_in_a_fresh_world",
    ),
    Mutant(
        "rows of another kernel hold",
        "tuner/search/session.py",
        "        if evidence.is_current(trial):\n",
        "        if True:\n",
        "tests/test_rows.py::test_rows_of_another_kernel_or_outside_the_space_do_not_hold",
    ),
    Mutant(
        "a fused config wins a contest without being sure",
        "tuner/warm_up/contest.py",
        "(found.speedup_interval or (0.0, 0.0))[0] >= SERVED",
        "(found.speedup_interval or (0.0, 0.0))[0] > 0",
        "tests/test_contest.py::test_the_fastest_wins_and_bsp_wins_ties",
    ),
    # tftune/graph_pass
    Mutant(
        "rows of a batch stay in the order of the ranks",
        "tftune/graph_pass/rewrite.py",
        "c = self.call(aten.reshape.default, turned, [-1, n])",
        "c = self.call(aten.reshape.default, apart, [-1, n])",
        "tests/test_compile_pass_ranks.py::test_kernels_give_the_same_numbers",
    ),
    Mutant(
        "a collective is in flight beside a kernel",
        "tftune/graph_pass/flight.py",
        "kernel.prepend(wait)",
        "pass",
        "tests/test_compile_pass.py::test_no_collective_is_in_flight_beside_a_kernel",
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
        "tests/test_selector.py::test_a_stale_kernel_disables_exactly_its_own_answers",
    ),
    Mutant(
        "what was confirmed is forgotten with the memory of answers",
        "models/selector.py",
        "        self._confirmed[mode, shape.key] = self._answers",
        "        self._answers",
        "tests/test_selector.py::test_what_was_confirmed_outlives_the_memory_of_answers",
    ),
    Mutant(
        "ranks that do not agree forget their machine",
        "models/selector.py",
        "bsp_only=reason, machine=self.machine,",
        "bsp_only=reason,",
        "tests/test_selector.py::test_a_restricted_selector_still_compares_its_machine",
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
    # kernels: host side
    Mutant(
        "operands aligned to 8 bytes are launched",
        "kernels/runtime/operands.py",
        "& 15 == 0",
        "& 7 == 0",
        "tests/test_operands.py::test_an_operand_half_aligned_or_elsewhere_is_refused",
    ),
    Mutant(
        "operands on another device are launched",
        "kernels/runtime/operands.py",
        "        and a.get_device() == b.get_device() == workspace.ordinal\n",
        "",
        "tests/test_operands.py::test_an_operand_half_aligned_or_elsewhere_is_refused",
    ),
    Mutant(
        "a call ends before its copies",
        "kernels/comm/copy_engine.py",
        '''when the copies have ended."""
        for stream in self._streams:
            if stream is not None:
                _main(stream).wait_stream(stream)
''',
        '''when the copies have ended."""
        for stream in self._streams:
            if stream is not None:
                pass
''',
        STREAMS,
    ),
    Mutant(
        "copies start before the epoch of their call is known",
        "kernels/comm/copy_engine.py",
        "                stream.wait_stream(_main(stream))\n",
        "                pass\n",
        STREAMS,
    ),
    Mutant(
        "the flag goes before its piece",
        "kernels/comm/copy_engine.py",
        "                self._runtime.copy(piece, target, shard + piece.source, stream)\n"
        "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n",
        "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n"
        "                self._runtime.copy(piece, target, shard + piece.source, stream)\n",
        f"{COPIES}::test_a_flag_is_copied_right_behind_its_piece_in_the_same_stream",
    ),
    # kernels: device side
    Mutant(
        "finish: counted without order",
        "kernels/comm/symmetric.py",
        'EXITS_OFFSET), 1, sem="acq_rel", scope="gpu")',
        'EXITS_OFFSET), 1, sem="relaxed", scope="gpu")',
        FINISH,
    ),
    Mutant(
        "finish: counted before all warps have arrived",
        "kernels/comm/symmetric.py",
        "    tl.debug_barrier()\n    left = ",
        "    left = ",
        FINISH,
    ),
    Mutant(
        "barrier: flags without order",
        "kernels/comm/symmetric.py",
        'arrival, epoch, sem="release", scope="sys")',
        'arrival, epoch, sem="relaxed", scope="sys")',
        MEETING,
    ),
    Mutant(
        "barrier: flags released for one GPU",
        "kernels/comm/symmetric.py",
        'arrival, epoch, sem="release", scope="sys")',
        'arrival, epoch, sem="release", scope="gpu")',
        MEETING,
    ),
    Mutant(
        "barrier: does not wait",
        "kernels/comm/symmetric.py",
        "        wait(control + BARRIER_FLAGS_OFFSET",
        "        _ = (control + BARRIER_FLAGS_OFFSET",
        MEETING,
    ),
    Mutant(
        "add_parts: waves do not drain (AMD)",
        "kernels/device/gemm.py",
        "    drain(part, ARCH)\n",
        "    tl.debug_barrier()\n",
        PARTS,
    ),
    Mutant(
        "add_parts: no barrier before the count",
        "kernels/device/gemm.py",
        "    drain(part, ARCH)\n",
        "",
        PARTS,
    ),
    Mutant(
        "add_parts: counted without order",
        "kernels/device/gemm.py",
        'arrivals_ptr + tile, 1, sem="acq_rel", scope="gpu")',
        'arrivals_ptr + tile, 1, sem="relaxed", scope="gpu")',
        PARTS,
    ),
    Mutant(
        "add_parts: parts of others read without acquire",
        "kernels/device/gemm.py",
        'arrivals_ptr + tile, 0, sem="acquire", scope="gpu")',
        'arrivals_ptr + tile, 0, sem="relaxed", scope="gpu")',
        f"{ORDER}::test_parts_of_others_are_read_once_their_count_is_acquired",
    ),
    # tftune/serve and tftune/client
    *SERVICE_MUTANTS,
)
