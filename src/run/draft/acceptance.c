/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/acceptance.h"

/* Each class begins with a length or a place, and with a guess that weighs as much as so many trials. */
typedef struct evidence_class {
    uint32_t least;
    float usual;
} evidence_class;
static const evidence_class by_match[GB_EVIDENCE_CLASSES] = {{0, 0.1f}, {2, 0.35f}, {3, 0.5f},  {4, 0.6f},
                                                             {5, 0.7f}, {7, 0.8f},  {11, 0.9f}, {17, 0.95f}};
static const evidence_class by_place[GB_EVIDENCE_CLASSES] = {{0, 0.7f}, {1, 0.7f}, {2, 0.7f}, {3, 0.7f},
                                                             {4, 0.7f}, {5, 0.7f}, {7, 0.7f}, {11, 0.7f}};
static const float usual_weight = 2, fading = 1.0f - 1.0f / 256;

static const evidence_class *classes_of(const gb_acceptance *acceptance) {
    return acceptance->is_by_place ? by_place : by_match;
}

static uint32_t class_of(const gb_acceptance *acceptance, uint32_t evidence) {
    const evidence_class *classes = classes_of(acceptance);
    uint32_t found = GB_EVIDENCE_CLASSES - 1;
    while (classes[found].least > evidence)
        found--;
    return found;
}

float gb_acceptance_chance(const gb_acceptance *acceptance, uint32_t evidence) {
    const uint32_t c = class_of(acceptance, evidence);
    return (usual_weight * classes_of(acceptance)[c].usual + acceptance->accepted[c]) /
           (usual_weight + acceptance->tried[c]);
}

void gb_acceptance_note(gb_acceptance *acceptance, uint32_t evidence, bool was_accepted) {
    const uint32_t c = class_of(acceptance, evidence);
    acceptance->tried[c] += 1;
    acceptance->accepted[c] += was_accepted;
}

void gb_acceptance_fade(gb_acceptance *acceptance) {
    for (uint32_t c = 0; c < GB_EVIDENCE_CLASSES; c++) {
        acceptance->tried[c] *= fading;
        acceptance->accepted[c] *= fading;
    }
}
