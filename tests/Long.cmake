# What takes over 10 s on two idle cores. The presets leave out the label "long", which tools/long.sh runs, as does
# ctest -L '^long$'. Whole models on the emulated CUDA device have the label "longest" and are built for tools/long.sh alone
# (-DGUMBEL_LONG_TESTS=ON).

# Run with GUMBEL_SHORT_TESTS=1 in the environment, with which they take fewer tokens or cases; long.NAME is all of it.
set(shortened_tests
  cli.calibrate cli.size cpu.damaged cpu.interleaved
  cuda-emulated.accesses cuda-emulated.attention cuda-emulated.attention_shares cuda-emulated.attention_small_weights
  cuda-emulated.draft_head cuda-emulated.draft_steps cuda-emulated.experts cuda-emulated.int8_products cuda-emulated.masks
  cuda-emulated.plan cuda-emulated.prefill_chunk cuda-emulated.products cuda-emulated.prompt_pieces
  cuda-emulated.rounded_rows cuda-emulated.row_errors cuda-emulated.sample cuda-emulated.scheduler_engine
  cuda-emulated.session cuda-emulated.soak cuda-emulated.stop_tokens
  devices.draft_model devices.drafts devices.grammar_answers grammar.schema_answers grammar.schema_errors
  harness.io_faults harness.kills harness.pull_faults harness.schedule harness.serve_faults hub.pull mlx.closeness
  models.gemma3 models.qwen2.5-coder models.smollm2 processes.devices processes.drafts processes.grammar_answers program.hostile
  run.devices run.draft_model run.drafts run.same_bits run.tools_long_context server.lost_rank server.tools)

# Long as a whole: what they test has other, shorter tests.
set(long_tests
  cuda-emulated.attention_tensor_cores cuda-emulated.dense_products cuda-emulated.draft_model cuda-emulated.drafted_answers
  cuda-emulated.drafts cuda-emulated.processes_devices cuda-emulated.run_ahead
  cuda-emulated.same_tokens cuda-emulated.stop_strings long.cuda-emulated.bench_soak)

# Of these, the ones that take hours on the emulated device unless they are shortened.
set(shortened_long_tests cuda-emulated.draft_model cuda-emulated.drafted_answers cuda-emulated.drafts)

# The same of builds with a sanitizer.
set(shortened_sanitized_tests
  cli.bench harness.schedule_soak run.grammar_answers run.prompt_pieces run.stop_strings
  server.same_answers server.soak server.structured)
set(long_sanitized_tests hub.pull sampler.distribution sampler.fused server.http)
