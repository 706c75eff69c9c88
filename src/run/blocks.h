/* SPDX-License-Identifier: Apache-2.0
 *
 * A prompt's blocks, where a backend computes one in blocks (gb_backend.grain). Tokens that do not fill a
 * block are held until the rest of it comes or something wants their states, so that bits do not depend on
 * where a prompt was cut.
 */
#ifndef GUMBEL_RUN_BLOCKS_H
#define GUMBEL_RUN_BLOCKS_H

#include "run/handles.h"

/* Where the requests' sessions stand amid a block that cannot go on from there, runs what comes before again:
 * held tokens of a prompt that an answer follows, and a prompt that a result was drawn from and that goes on
 * nevertheless. engine->requests stays as it is. On an error the states of a session may be ahead
 * (is_ahead). */
gumbel_status gb_begin_blocks(gumbel_engine *engine, gumbel_error *error);

/* Puts what the session of a request holds before its tokens, and leaves those to be held that do not fill a
 * block: engine->requests.rest. */
void gb_cut_request(gumbel_engine *engine, size_t index);

/* Makes the states those of the session's position again, after a step that failed, by running its tokens
 * again from the snapshot or from the beginning. A session whose own tokens the backend refuses is emptied.
 */
void gb_bring_back(gumbel_session *session);

#endif
