/* SPDX-License-Identifier: Apache-2.0
 *
 * Agreement with mlx-lm, on any backend. For each configuration of tests/data/export/agreement a program with
 * the same random weights is exported and run: the prompt's last logits agree, greedy and sampled
 * continuations are equal. tests/oracle/make_goldens.py writes the answers.
 */
#ifndef GUMBEL_TESTS_SUPPORT_AGREEMENT_H
#define GUMBEL_TESTS_SUPPORT_AGREEMENT_H

/* Fails the test where the configuration's program does not agree on that backend. */
void assert_agrees_with_mlx_lm(const char *name, const char *backend);

/* A list for the tests of a configuration each. */
#define AGREEMENT_CONFIGURATIONS(X)                                                                          \
    X("released")                                                                                            \
    X("defaults") X("per_layer") X("wide_window") X("odd_sizes") X("half") X("own_head") X("qwen_released")  \
        X("qwen_older") X("qwen_many_experts") X("qwen_odd_sizes") X("qwen_tied") X("qwen_dense")            \
            X("qwen_dense_text")

#endif
