"""Planted faults of the tuner: the bench, its ranks and the search."""

from __future__ import annotations

from planted_fault import Mutant

NODE = "tests/test_node_requests.py"
SEARCH = "tests/test_search_studies.py"
FINALS = "tests/test_search_finals.py"

TUNER_MUTANTS: tuple[Mutant, ...] = (
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
        "is_surely_faster(outcome.speedup_interval or (0.0, 0.0))",
        "(outcome.speedup_interval or (0.0, 0.0))[0] > 0",
        "tests/test_contest.py::test_the_fastest_wins_and_bsp_wins_ties",
    ),
)
