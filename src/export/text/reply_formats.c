/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/reply_formats.h"

#include <string.h>

/* Gemma 4: calls are call:NAME{key:<|"|>text<|"|>,other:1}. The model may begin one before its thought ends,
 * leave the end of one out, or give an end too many. */
static const char GEMMA4[] =
    "{\"start_anchor\": [\"<|turn>model\\n\", \"<tool_response|>\"],\n"
    " \"stray\": [\"<tool_call|>\", \"<channel|>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": [\"<|channel>thought\\n\", \"<|channel>thought\"],\n"
    "   \"close\": [\"<channel|>\", \"<|tool_response>\", \"<turn|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<\\\\|tool_call>\",\n"
    "   \"close\": [\"<tool_call|>\", \"<|tool_response>\", \"<turn|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"begin_pattern\": \"\\\\s*call:\\\\s*[^\\\\s{}]+\\\\s*\\\\{\",\n"
    "   \"body_pattern\": \"\\\\s*call:\\\\s*(?P<name>[^\\\\s{}]+)"
    "\\\\s*(?P<content>\\\\{.*\\\\})\\\\s*\\\\z\",\n"
    "   \"content\": \"json\",\n"
    "   \"content_args\": {\"unquoted_keys\": true, \"string_delims\": [[\"<|\\\"|>\", \"<|\\\"|>\"]]},\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"call\": \"<|tool_call>call:{name}{arguments}<tool_call|>\",\n"
    "    \"reserved\": [\"<|\\\"|>\"]}},\n"
    "  \"content\": {\"close\": [\"<turn|>\", \"<|tool_response>\", \"<eos>\"]}}}\n";

/* Qwen3.5 and 3.6: calls are <function=NAME><parameter=KEY>\nVALUE\n</parameter></function> between
 * <tool_call> and </tool_call>. Any end may be missing where the next tag shows it, the last one where the
 * function has ended. */
static const char QWEN3_5[] =
    "{\"start_anchor\": \"<|im_start|>assistant\\n\",\n"
    " \"stray\": [\"</think>\", \"</tool_call>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": \"<think>\", \"close\": [\"</think>\", \"<|im_end|>\"],\n"
    "   \"leads\": true},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<tool_call>\",\n"
    "   \"close\": [\"</tool_call>\", \"<|im_end|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"begin_pattern\": \"\\\\s*<function=[^>\\\\n]+>\",\n"
    "   \"body_pattern\": \"\\\\s*<function=(?P<name>[^>\\\\n]+)>(?P<content>.*?)"
    "(?:</function>\\\\s*(?=<function=|\\\\z)|\\\\z)\",\n"
    "   \"unclosed_pattern\": \"</function>\\\\s*\\\\z\",\n"
    "   \"content\": \"xml-inline\",\n"
    "   \"content_args\": {\"strict\": true,\n"
    "    \"tag_pattern\": \"<parameter=(?P<key>[^>\\\\n]+)>\\\\n?(?P<value>.*?)\\\\n?"
    "(?:</parameter>(?=\\\\s*(?:<parameter=|\\\\z))"
    "|(?=<parameter=[^>\\\\n]+>)|\\\\z)\"},\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"before\": [\"\\n\", \"\\n\\n\"],\n"
    "    \"call\": \"<tool_call>\\n<function={name}>\\n{arguments}</function>\\n</tool_call>\",\n"
    "    \"argument\": \"<parameter={name}>\\n{value}\\n</parameter>\\n\",\n"
    "    \"reserved\": [\"<parameter=\", \"</parameter>\", \"<function=\", \"</function>\", "
    "\"<tool_call>\", \"</tool_call>\"]}},\n"
    "  \"content\": {\"close\": [\"<|im_end|>\", \"<|endoftext|>\"]}}}\n";

#define HARMONY_CALL                                                                                         \
    "\"close\": [\"<|call|>\", \"<|end|>\", \"<|return|>\"],\n"                                              \
    "   \"begin_pattern\": \"[^\\\\s<]+(?:<\\\\|channel\\\\|>[a-z]+)?\\\\s*(?:<\\\\|constrain\\\\|>)?"       \
    "(?:json)?\\\\s*<\\\\|message\\\\|>\",\n"                                                                \
    "   \"body_pattern\": \"(?:functions\\\\.)?(?P<name>[^\\\\s<]+)(?:<\\\\|channel\\\\|>[a-z]+)?\\\\s*"     \
    "(?:<\\\\|constrain\\\\|>)?(?:json)?\\\\s*<\\\\|message\\\\|>"                                           \
    "(?P<content>\\\\{.*\\\\})\\\\s*\\\\z\",\n"                                                              \
    "   \"content\": \"json\",\n"                                                                            \
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"}"

/* gpt-oss: a reply is messages, each to a channel and maybe a recipient, which stands before the channel or
 * behind it. A call is a message to functions.NAME. */
static const char HARMONY[] =
    "{\"start_anchor\": \"<|start|>assistant\",\n"
    " \"stray\": [\"<|start|>assistant<|channel|>final<|message|>\", \"<|channel|>final<|message|>\",\n"
    "  \"<|start|>assistant<|channel|>commentary<|message|>\", \"<|channel|>commentary<|message|>\",\n"
    "  \"<|start|>assistant\", \"<|end|>\", \"<|call|>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\n"
    "   \"open\": [\"<|channel|>analysis<|message|>\", "
    "\"<|start|>assistant<|channel|>analysis<|message|>\"],\n"
    "   \"close\": [\"<|end|>\", \"<|return|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": "
    "\"(?:<\\\\|start\\\\|>assistant(?:<\\\\|channel\\\\|>[a-z]+)?|<\\\\|channel\\\\|>[a-z]+) to=\",\n"
    "   \"ends\": [\"tool_calls\"],\n"
    "   " HARMONY_CALL ",\n"
    "   \"written\": {\"before\": [\"<|start|>assistant\"],\n"
    "    \"call\": \"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
    "{arguments}<|call|>\"}},\n"
    "  \"plain_calls\": {\"open_pattern\": \" to=\", \"leads\": true,\n"
    "   " HARMONY_CALL "},\n"
    "  \"content\": {\"close\": [\"<|return|>\", \"<|endoftext|>\"]}}}\n";

/* Muse Glimmer: a reply is messages, each with a recipient: thoughts are to itself, and calls, which are
 * <atem:invoke name="NAME"><atem:parameter name="KEY">VALUE</atem:parameter></atem:invoke>, to the tool. */
static const char MUSE_GLIMMER[] =
    "{\"start_anchor\": \"<|start|>assistant\",\n"
    " \"stray\": [\" to=user<|message|>\", \"<|start|>assistant\", \"<|message|>\", \"<|eom|>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": \" to=self<|message|>\", \"close\": [\"<|eom|>\", \"<|eot|>\"]},\n"
    "  \"tool_calls\": {\"open_pattern\": \"(?:<\\\\|start\\\\|>assistant)? to=(?!self<|user<)[^\\\\s<]+"
    "<\\\\|message\\\\|>\\\\s*<atem:function_calls>\",\n"
    "   \"close\": [\"</atem:function_calls>\", \"<|eom|>\", \"<|eot|>\"],\n"
    "   \"ends\": [\"tool_calls\"],\n"
    "   \"begin_pattern\": \"\\\\s*<atem:invoke name=\\\"[^\\\"\\n]+\\\">\",\n"
    "   \"body_pattern\": \"\\\\s*<atem:invoke name=\\\"(?P<name>[^\\\"\\n]+)\\\">(?P<content>.*?)"
    "(?:</atem:invoke>\\\\s*(?=<atem:invoke name=|\\\\z)|\\\\z)\",\n"
    "   \"unclosed_pattern\": \"</atem:invoke>\\\\s*\\\\z\",\n"
    "   \"content\": \"xml-inline\",\n"
    "   \"content_args\": {\"strict\": true,\n"
    "    \"tag_pattern\": \"<atem:parameter name=\\\"(?P<key>[^\\\"\\n]+)\\\">(?P<value>.*?)"
    "</atem:parameter>(?=\\\\s*(?:<atem:parameter name=|\\\\z))\"},\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"alone\": true,\n"
    "    \"call\": \" to={name}<|message|><atem:function_calls>\\n<atem:invoke name=\\\"{name}\\\">\\n"
    "{arguments}</atem:invoke>\\n</atem:function_calls>\",\n"
    "    \"argument\": \"<atem:parameter name=\\\"{name}\\\">{value}</atem:parameter>\\n\",\n"
    "    \"reserved\": [\"<atem:parameter\", \"</atem:parameter>\", \"<atem:invoke\", \"</atem:invoke>\", "
    "\"<atem:function_calls>\", \"</atem:function_calls>\"]}},\n"
    "  \"content\": {\"close\": [\"<|eot|>\", \"<|end_of_text|>\"]}}}\n";

#define FENCE "(?:```(?:json)?\\\\s*)?"
#define FENCE_END "(?:```\\\\s*)?"

/* Calls without marks are the whole reply; fence and fence_end: what may stand around each. */
#define PLAIN_CALLS(fence, fence_end)                                                                        \
    "   \"needs_tools\": true, \"leads\": true,\n"                                                           \
    "   \"open_pattern\": \"\\\\s*" fence "\\\\{\\\\s*\\\"name\\\"\\\\s*:\",\n"                              \
    "   \"begin_pattern\": \"\\\\s*\\\"[^\\\"]+\\\"\\\\s*,\\\\s*\\\"arguments\\\"\\\\s*:\\\\s*\\\\{\",\n"    \
    "   \"body_pattern\": "                                                                                  \
    "\"\\\\s*(?:" fence "\\\\{\\\\s*\\\"name\\\"\\\\s*:)?\\\\s*\\\"(?P<name>[^\\\"]+)"                       \
    "\\\"\\\\s*,"                                                                                            \
    "\\\\s*\\\"arguments\\\"\\\\s*:\\\\s*(?P<content>\\\\{(?:[^{}\\\"]|\\\"(?:[^\\\"\\\\\\\\]|\\\\\\\\.)*"   \
    "\\\"|(?P>content))*+\\\\})"                                                                             \
    "\\\\s*\\\\}\\\\s*" fence_end "\",\n"                                                                    \
    "   \"content\": \"json\",\n"                                                                            \
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"}"

#define FENCED_CALLS PLAIN_CALLS(FENCE, FENCE_END)
#define BARE_CALLS PLAIN_CALLS("", "")

/* Qwen2 to Qwen3 and SmolLM3: calls are {"name": NAME, "arguments": {...}} between <tool_call> and
 * </tool_call>. Qwen2.5-Coder mostly leaves these out. */
static const char QWEN3[] =
    "{\"start_anchor\": \"<|im_start|>assistant\\n\",\n"
    " \"stray\": [\"</think>\", \"</tool_call>\"],\n"
    " \"fields\": {\n"
    "  \"reasoning_content\": {\"open\": \"<think>\", \"close\": [\"</think>\", \"<|im_end|>\"],\n"
    "   \"leads\": true},\n"
    "  \"tool_calls\": {\"open_pattern\": \"\\\\s*<tool_call>\",\n"
    "   \"close\": [\"</tool_call>\", \"<|im_end|>\"],\n"
    "   \"within\": [\"reasoning_content\"], \"ends\": [\"tool_calls\"],\n"
    "   \"begin_pattern\": \"\\\\s*\\\\{\\\\s*\\\"\",\n"
    "   \"content\": \"json\",\n"
    "   \"transform\": {\"name\": \"{content.name}\", \"arguments\": \"{content.arguments}\"},\n"
    "   \"written\": {\"before\": [\"\\n\"],\n"
    "    \"call\": \"<tool_call>\\n{\\\"name\\\": \\\"{name}\\\", \\\"arguments\\\": "
    "{arguments}}\\n</tool_call>\"}},\n"
    "  \"plain_calls\": {" FENCED_CALLS "},\n"
    "  \"content\": {\"close\": [\"<|im_end|>\", \"<|endoftext|>\"]}}}\n";

/* Llama 3: a call is {"name": NAME, "parameters": {...}} to the end of the reply, maybe behind
 * <|python_tag|>. */
static const char LLAMA3[] =
    "{\"start_anchor\": \"<|start_header_id|>assistant<|end_header_id|>\\n\\n\",\n"
    " \"fields\": {\n"
    "  \"tool_calls\": {\n"
    "   \"open_pattern\": \"\\\\s*(?:<\\\\|python_tag\\\\|>)?\\\\s*\\\\{\\\\s*\\\"name\\\"\\\\s*:\",\n"
    "   \"close\": [\"<|eot_id|>\", \"<|eom_id|>\"], \"leads\": true,\n"
    "   \"begin_pattern\": \"\\\\s*\\\"[^\\\"]+\\\"\\\\s*,\\\\s*\\\"parameters\\\"\\\\s*:\\\\s*\\\\{\",\n"
    "   \"body_pattern\": \"\\\\s*\\\"(?P<name>[^\\\"]+)\\\"\\\\s*,\\\\s*\\\"parameters\\\"\\\\s*:\\\\s*"
    "(?P<content>\\\\{.*\\\\})\\\\s*\\\\}\\\\s*\\\\z\",\n"
    "   \"content\": \"json\",\n"
    "   \"transform\": {\"name\": \"{name}\", \"arguments\": \"{content}\"},\n"
    "   \"written\": {\"alone\": true,\n"
    "    \"call\": \"{\\\"name\\\": \\\"{name}\\\", \\\"parameters\\\": {arguments}}\"}},\n"
    "  \"content\": {\"close\": [\"<|eot_id|>\", \"<|eom_id|>\", \"<|end_of_text|>\"]}}}\n";

/* Calls of models whose own syntax is not known: the prompt says how to write them where the template shows
 * no tools (text/chat/chat_tools.h), and a grammar constrains the answer to it. */
#define GENERIC_CALLS                                                                                        \
    "  \"tool_calls\": {" BARE_CALLS ",\n"                                                                   \
    "   \"written\": {\"alone\": true,\n"                                                                    \
    "    \"call\": \"{\\\"name\\\": \\\"{name}\\\", \\\"arguments\\\": {arguments}}\"}},\n"

/* No marks: what the model writes is content as it stands. */
static const char PLAIN[] =
    "{\"fields\": {\n" GENERIC_CALLS "  \"content\": {\"content_args\": {\"strip\": false}}}}\n";

/* Models that think and whose calls are not known, such as those distilled from DeepSeek-R1. */
static const char THINK[] = "{\"start_anchor_pattern\": \"<\\\\|im_start\\\\|>assistant\\\\n|<\xEF\xBD\x9C"
                            "Assistant\xEF\xBD\x9C>"
                            "|<\\\\|im_start\\\\|>assistant<\\\\|im_sep\\\\|>|<\\\\|assistant\\\\|>"
                            "|<\\\\|start_header_id\\\\|>assistant<\\\\|end_header_id\\\\|>\\\\n\\\\n\",\n"
                            " \"stray\": \"</think>\",\n"
                            " \"fields\": {\n"
                            "  \"reasoning_content\": {\"open\": \"<think>\", \"close\": \"</think>\", "
                            "\"leads\": true},\n" GENERIC_CALLS "  \"content\": {}}}\n";

/* The more a row asks for, the earlier it stands: ChatML with Qwen3.5's tags also has those of Qwen3. */
static const gb_reply_family FAMILIES[] = {
    {"gemma4", GEMMA4, "<|turn>", {"<|turn>", "<|tool_call>"}},
    {"qwen3_5", QWEN3_5, "<|im_start|>", {"<|im_start|>", "<tool_call>", "<function=", "<parameter="}},
    {"qwen3", QWEN3, "<|im_start|>", {"<|im_start|>", "<tool_call>", "\"arguments\""}},
    {"harmony", HARMONY, "<|start|>", {"<|start|>", "<|channel|>final<|message|>", "to="}},
    {"muse_glimmer",
     MUSE_GLIMMER,
     "<|start|>",
     {"<|start|>assistant", "to=self<|message|>", "<atem:function_calls>", "<atem:parameter name="}},
    {"llama3", LLAMA3, "<|start_header_id|>", {"<|start_header_id|>", "\"parameters\""}},
    {"think", THINK, NULL, {"</think>"}},
    {"plain", PLAIN, NULL, {NULL}},
};

enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

const char *gb_known_reply_format(const char *name) {
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(FAMILIES[i].name, name) == 0)
            return FAMILIES[i].json;
    return NULL;
}

static bool contains(const gb_blob *bytes, const char *text) {
    const size_t length = strlen(text);
    for (uint64_t at = 0; at + length <= bytes->size; at++)
        if (memcmp(bytes->data + at, text, length) == 0)
            return true;
    return false;
}

static bool has_marks(const gb_reply_family *family, const gb_blob *templates, const gb_blob *vocabulary) {
    for (size_t i = 0; i < GB_FAMILY_MARKS && family->marks[i]; i++)
        if (!contains(templates, family->marks[i]))
            return false;
    return !family->token || contains(vocabulary, family->token);
}

const char *gb_find_reply_format(const gb_blob *templates, const gb_blob *vocabulary) {
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        if (has_marks(&FAMILIES[i], templates, vocabulary))
            return FAMILIES[i].json;
    return PLAIN;
}
