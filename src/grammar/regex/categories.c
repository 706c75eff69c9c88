/* SPDX-License-Identifier: Apache-2.0
 *
 * General categories of Unicode characters, by utf8proc.
 */
#include "grammar/regex/ranges.h"

#include <string.h>
#include <utf8proc.h>

#define BIT(name) (1u << UTF8PROC_CATEGORY_##name)
#define CASED (BIT(LU) | BIT(LL) | BIT(LT))
#define LETTERS (CASED | BIT(LM) | BIT(LO))
#define MARKS (BIT(MN) | BIT(MC) | BIT(ME))
#define NUMBERS (BIT(ND) | BIT(NL) | BIT(NO))
#define PUNCTUATION (BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO))
#define SYMBOLS (BIT(SM) | BIT(SC) | BIT(SK) | BIT(SO))
#define SEPARATORS (BIT(ZS) | BIT(ZL) | BIT(ZP))
#define OTHERS (BIT(CC) | BIT(CF) | BIT(CS) | BIT(CO) | BIT(CN))

static const struct {
    const char *name, *long_name;
    uint32_t categories;
} names[] = {
    {"L", "Letter", LETTERS},
    {"LC", "Cased_Letter", CASED},
    {"Lu", "Uppercase_Letter", BIT(LU)},
    {"Ll", "Lowercase_Letter", BIT(LL)},
    {"Lt", "Titlecase_Letter", BIT(LT)},
    {"Lm", "Modifier_Letter", BIT(LM)},
    {"Lo", "Other_Letter", BIT(LO)},
    {"M", "Mark", MARKS},
    {"Mn", "Nonspacing_Mark", BIT(MN)},
    {"Mc", "Spacing_Mark", BIT(MC)},
    {"Me", "Enclosing_Mark", BIT(ME)},
    {"N", "Number", NUMBERS},
    {"Nd", "Decimal_Number", BIT(ND)},
    {"Nl", "Letter_Number", BIT(NL)},
    {"No", "Other_Number", BIT(NO)},
    {"P", "Punctuation", PUNCTUATION},
    {"Pc", "Connector_Punctuation", BIT(PC)},
    {"Pd", "Dash_Punctuation", BIT(PD)},
    {"Ps", "Open_Punctuation", BIT(PS)},
    {"Pe", "Close_Punctuation", BIT(PE)},
    {"Pi", "Initial_Punctuation", BIT(PI)},
    {"Pf", "Final_Punctuation", BIT(PF)},
    {"Po", "Other_Punctuation", BIT(PO)},
    {"S", "Symbol", SYMBOLS},
    {"Sm", "Math_Symbol", BIT(SM)},
    {"Sc", "Currency_Symbol", BIT(SC)},
    {"Sk", "Modifier_Symbol", BIT(SK)},
    {"So", "Other_Symbol", BIT(SO)},
    {"Z", "Separator", SEPARATORS},
    {"Zs", "Space_Separator", BIT(ZS)},
    {"Zl", "Line_Separator", BIT(ZL)},
    {"Zp", "Paragraph_Separator", BIT(ZP)},
    {"C", "Other", OTHERS},
    {"Cc", "Control", BIT(CC)},
    {"Cf", "Format", BIT(CF)},
    {"Co", "Private_Use", BIT(CO)},
    {"Cn", "Unassigned", BIT(CN)},
    {"Any", "Any", UINT32_MAX},
};

static bool is_named(const char *text, size_t length, const char *name) {
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

static void add_characters(gb_ranges *ranges, uint32_t categories) {
    uint32_t first = 0;
    bool within = false;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        bool has = c < 0x110000 && categories >> utf8proc_category((utf8proc_int32_t)c) & 1u;
        if (has && !within)
            first = c;
        if (within && !has)
            gb_add_range(ranges, first, c - 1);
        within = has;
    }
}

bool gb_add_category(gb_ranges *ranges, const char *name, size_t length) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_named(name, length, names[i].name) || is_named(name, length, names[i].long_name)) {
            add_characters(ranges, names[i].categories);
            return true;
        }
    return false;
}
