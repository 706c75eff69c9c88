/* SPDX-License-Identifier: Apache-2.0
 *
 * Which texts schemas allow: numbers, strings, listed values, arrays.
 */
#include "check_schema.h"

static const gb_schema_options compact = {.space = GB_SPACE_NONE};

static void test_types(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"true", {"null", "[1,{'a':[]}]", "-1.5e+3", "'x'", "{}"}, {"", "nul", "01", "[1,]", "{'a'}"}},
        {"{}", {"1", "false"}, {"tru"}},
        {"{'type':'null'}", {"null"}, {"0", "'null'"}},
        {"{'type':'boolean'}", {"true", "false"}, {"1"}},
        {"{'type':'integer'}", {"0", "-0", "-12", "123456789012345678901"}, {"1.0", "1e2", "+1", "00"}},
        {"{'type':'number'}", {"0", "-0.0", "1.50", "1E-9"}, {"1.", ".5", "01", "Infinity"}},
        {"{'type':['integer','null']}", {"7", "null"}, {"7.5", "''"}},
        {"{'type':'string','nullable':true}", {"null", "'a'"}, {"1"}},
        {"{'properties':{'a':false}}", {"1", "{'b':1}", "'a'"}, {"{'a':1}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_integers(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'integer','minimum':5,'maximum':1234}",
         {"5", "9", "10", "999", "1000", "1234"},
         {"4", "1235", "05", "-5", "10000"}},
        {"{'type':'integer','minimum':-12,'maximum':3}", {"-12", "-1", "0", "3"}, {"-13", "4", "-0", "-20"}},
        {"{'type':'integer','exclusiveMinimum':9,'exclusiveMaximum':11}", {"10"}, {"9", "11"}},
        {"{'type':'integer','minimum':1.5,'maximum':3.5}", {"2", "3"}, {"1", "4", "2.0"}},
        {"{'type':'integer','minimum':9,'exclusiveMinimum':true}", {"10"}, {"9"}},
        {"{'type':'integer','minimum':3,'exclusiveMinimum':false}", {"3"}, {"2"}},
        {"{'type':'integer','format':'int32'}", {"2147483647", "-2147483648"}, {"2147483648", "-2147483649"}},
        {"{'type':'integer','minimum':9223372036854775808,'maximum':18446744073709551615}",
         {"9223372036854775808", "18446744073709551615"},
         {"9223372036854775807", "18446744073709551616"}},
        {"{'enum':[-100000000000000000001,2.0,3]}",
         {"-100000000000000000001", "2", "2.0", "3"},
         {"-100000000000000000000", "3.0"}},
        {"{'type':'integer','minimum':9223372036854775807}",
         {"9223372036854775807", "9223372036854775808"},
         {"9223372036854775806"}},
        {"{'type':'integer','multipleOf':7}",
         {"0", "7", "-14", "7000000000000000000007"},
         {"1", "-6", "70000000000000000000071", "70000000000000000000000000000000000000000"}},
        {"{'type':'integer','multipleOf':10,'minimum':15}", {"20", "100"}, {"10", "25"}},
        {"{'type':'integer','multipleOf':0.5}", {"3"}, {"3.5"}},
        {"{'type':'integer','not':{'const':5}}", {"4", "55"}, {"5"}},
        {"{'type':'integer','not':{'minimum':5}}", {"4", "-7"}, {"5"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_numbers(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'number','minimum':-3.5,'exclusiveMaximum':12.25}",
         {"-3.5", "-3.50", "-0.1", "0", "12", "12.2499", "3.25"},
         {"-3.51", "12.25", "12.250", "13", "1e1"}},
        {"{'type':'number','minimum':0.001,'maximum':0.002}",
         {"0.001", "0.0015", "0.0020"},
         {"0", "0.0009", "0.0021", "0.003"}},
        {"{'type':'number','exclusiveMinimum':0}",
         {"0.1", "1", "1e-06", "9.5E-1"},
         {"0", "0.0", "-0", "-1", "-1e-6", "0e-1"}},
        {"{'type':'number','minimum':-1,'maximum':0.5}", {"-1e-1", "0.5"}, {"1e-1", "-1e1", "1e-0"}},
        {"{'type':'number','minimum':0,'multipleOf':0.5}", {"0.5"}, {"5e-1"}},
        {"{'type':'number','minimum':0}", {"0", "0.0", "-0"}, {"-0.1"}},
        {"{'type':'number','minimum':1e-7,'maximum':1e3}",
         {"0.0000001", "1000", "1000.0"},
         {"0.00000009", "1000.1"}},
        {"{'type':'number','maximum':-2.5}", {"-2.5", "-3", "-2.51"}, {"-2.4", "2.5", "0"}},
        {"{'type':'number','multipleOf':0.01}", {"1", "1.2", "1.25", "-1.250"}, {"1.255"}},
        {"{'type':'number','multipleOf':1.5}", {"0", "1.5", "3.00", "-4.5"}, {"1", "2.5"}},
        {"{'type':'number','multipleOf':99.91}", {"0", "99.91", "-199.82", "9991"}, {"99", "99.9", "1"}},
        {"{'type':'number','not':{'const':1.5}}", {"1", "1.51"}, {"1.5", "1.50"}},
        {"{'type':'number','not':{'const':0}}", {"0.5", "-1"}, {"0", "-0", "0.0", "-0.0"}},
        {"{'type':'number','not':{'type':'integer'}}", {"0.5", "-12.25"}, {"1", "1.0", "-3.000"}},
        /* Beside what is excluded no number is so long that a double would be the excluded one. */
        {"{'type':'number','exclusiveMaximum':1}", {"0.99999999"}, {"0.99999999999999999999", "1"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_strings(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'string'}",
         {"''", "'\\\"\\\\\\/\\b\\f\\n\\r\\t'", "'\\u00e9\\ud83d\\ude00'", "'\xc3\xa9\x7f'"},
         {"'", "'\\x'", "'\n'", "'\\ud83d'", "'\\ude00'", "'\\u12'", "'\xc3'"}},
        {"{'type':'string','minLength':2,'maxLength':3}",
         {"'ab'", "'\xf0\x9f\x98\x80\xc3\xa9'", "'\\ud83d\\ude00\\n'", "'\\u0061bc'"},
         {"'a'", "'abcd'", "'\\ud83d\\ude00'"}},
        {"{'type':'string','maxLength':0}", {"''"}, {"'a'"}},
        {"{'type':'string','pattern':'ab'}", {"'ab'", "'xabx'", "'\\nab'"}, {"'a'", "'ba'"}},
        {"{'type':'string','pattern':'^a|b$'}", {"'ax'", "'xb'", "'a'"}, {"'xa'", "'bx'", "''"}},
        {"{'type':'string','pattern':'^(a|bc){2}$'}", {"'aa'", "'abc'", "'bcbc'"}, {"'a'", "'aaa'"}},
        {"{'type':'string','pattern':'^[^a]$'}",
         {"'b'", "'\\''", "'\\\\'", "'\\u0001'", "'\\n'"},
         {"'a'", "'\\u000a'", "'\\u0062'"}},
        {"{'type':'string','pattern':'^\\\\\\\\\\\\d$'}", {"'\\\\1'"}, {"'1'", "'\\\\x'"}},
        {"{'type':'string','pattern':'^a+$','minLength':2,'maxLength':3}",
         {"'aa'", "'aaa'"},
         {"'a'", "'aaaa'"}},
        {"{'type':'string','pattern':'^a\\u0000b'}", {"'a\\u0000bc'"}, {"'ac'", "'a'"}},
        {"{'type':'string','pattern':'^/[^\\u0000]+$'}", {"'/a'"}, {"'/'", "'/\\u0000'"}},
        {"{'type':'string','allOf':[{'pattern':'^a'},{'pattern':'^a\\u0000'}]}", {"'a\\u0000'"}, {"'ab'"}},
        {"{'type':'string','not':{'pattern':'^a'}}", {"''", "'ba'"}, {"'a'", "'ab'"}},
        {"{'type':'string','not':{'enum':['a','b\\n']}}", {"'b'", "''"}, {"'a'", "'b\\n'", "'\\u0061'"}},
        {"{'type':'string','not':{'minLength':2}}", {"''", "'a'"}, {"'ab'"}},
        {"{'type':'string','not':{'format':'date'}}", {"'x'"}, {"'2024-01-01'"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_formats(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'string','format':'date'}",
         {"'2024-02-29'", "'2000-02-29'", "'0001-12-31'"},
         {"'2023-02-29'", "'1900-02-29'", "'2024-04-31'", "'2024-13-01'", "'0000-01-01'"}},
        {"{'type':'string','format':'time'}",
         {"'23:59:59Z'", "'00:00:00.125+01:30'", "'23:59:60Z'"},
         {"'24:00:00Z'", "'12:00:60Z'", "'12:00:00'"}},
        {"{'type':'string','format':'date-time'}", {"'2024-01-31T10:20:30Z'"}, {"'2024-01-31 10:20:30Z'"}},
        {"{'type':'string','format':'duration'}",
         {"'P1Y2M3D'", "'PT5M'", "'P2W'", "'P1DT1S'"},
         {"'P'", "'PT'", "'P1Y2D'", "'P1W1D'"}},
        {"{'type':'string','format':'email'}", {"'a.b+c@example.org'"}, {"'a'", "'.a@b'", "'a@b..c'"}},
        {"{'type':'string','format':'hostname'}", {"'a-b.example'"}, {"'-a'", "'a.'", "'a_b'"}},
        {"{'type':'string','format':'ipv4'}", {"'255.0.10.9'"}, {"'256.1.1.1'", "'1.1.1'", "'01.1.1.1'"}},
        {"{'type':'string','format':'ipv6'}",
         {"'::'", "'::1'", "'1::8'", "'1:2:3:4:5:6:7:8'", "'::ffff:1.2.3.4'"},
         {"'1::2::3'", "'1:2:3:4:5:6:7'", "'12345::'"}},
        {"{'type':'string','format':'uuid'}",
         {"'2eb8aa08-aa98-11ea-b4aa-73b441d16380'"},
         {"'2eb8aa08aa9811eab4aa73b441d16380'"}},
        {"{'type':'string','format':'uri'}",
         {"'https://u@example.org:8/a/b?c=d#e'", "'urn:a:b'", "'http://[::1]/'"},
         {"'//example.org'", "'a b:c'", "'http://a b'"}},
        {"{'type':'string','format':'uri-reference'}",
         {"''", "'../a?b'", "'#c'", "'http://a'"},
         {"'a b'", "'\\\\'"}},
        {"{'type':'string','format':'iri'}",
         {"'https://b\xc3\xbc.example/\xe4\xbd\xa0?q#f'", "'urn:a'"},
         {"'//b'", "'a b:c'", "'http://a\xe2\x80\x8e'", "'http://\\\\a'"}},
        {"{'type':'string','format':'iri-reference'}", {"''", "'\xc3\xa9/a'", "'#c'"}, {"'a b'", "'<a>'"}},
        {"{'type':'string','format':'uri-template'}",
         {"''", "'http://a/{b}{?c,d*}/{+e:30}'", "'a.{b.c}'"},
         {"'{'", "'}'", "'{}'", "'{a'", "'{{a}}'", "'{a:0}'", "'{=a}'", "'a b'", "'%2'"}},
        {"{'type':'string','format':'idn-hostname'}",
         {"'b\xc3\xbc.example'", "'\xe4\xbd\xa0'", "'a-b'"},
         {"''", "'-\xc3\xbc'", "'a..b'", "'xn--a'", "'a.bc--d'", "'\xe2\x82\xac'"}},
        {"{'type':'string','format':'idn-email'}",
         {"'a@b.org'", "'\xc3\xbc.b@\xc3\xbc.org'"},
         {"'a'", "'@b'", "'.a@b'", "'a@b@c'", "'a@xn--b'"}},
        {"{'type':'string','format':'json-pointer'}", {"''", "'/a~1b/0'"}, {"'a'", "'/~2'"}},
        {"{'type':'string','format':'relative-json-pointer'}", {"'1'", "'0#'", "'12/a'"}, {"'/a'", "'01'"}},
        {"{'type':'string','format':'regex'}",
         {"''", "'^[a-zA-Z0-9_]{3,16}$'", "'(?:a|(b(c(d))))+?'", "'[^-0-9.]'", "'\\\\w{2,}\\\\.x'"},
         {"'*'", "'a**'", "'['", "'[z-a]'", "'(a'", "'a)'", "'\\\\'", "'{2}'", "'a{3,2}'", "'a{12,11}'",
          "'[]'"}},
        {"{'type':'string','format':'byte'}", {"''", "'YQ=='", "'Y'"}, {"1"}},
        {"{'type':'string','format':'password'}", {"'\\u0061'"}, {"1"}},
        {"{'format':'date'}", {"1", "'2024-01-01'", "null"}, {"'x'"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_listed(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'enum':['a',1,2.5,null,true,[1,{'a':[]}]]}",
         {"'a'", "1", "2.5", "null", "true", "[1,{'a':[]}]"},
         {"'b'", "1.0", "false", "[1]"}},
        {"{'const':'\\u0000\\n\\u00e9'}", {"'\\u0000\\n\xc3\xa9'"}, {"'\\u0000\\u000a\xc3\xa9'"}},
        {"{'const':{'b':1,'a':2}}", {"{'b':1,'a':2}"}, {"{'a':2,'b':1}", "{'b':1}"}},
        {"{'type':'string','enum':['a',1,null]}", {"'a'"}, {"1", "null"}},
        {"{'enum':[1,2,3,4,10],'minimum':2,'multipleOf':2}", {"2", "4", "10"}, {"1", "3"}},
        {"{'enum':['ab','cd','abcd'],'pattern':'^a','maxLength':3}", {"'ab'"}, {"'cd'", "'abcd'"}},
        {"{'enum':[[1],[1,2],['x']],'items':{'type':'integer'},'maxItems':1}", {"[1]"}, {"[1,2]", "['x']"}},
        {"{'enum':[{'k':1},{'k':'x'},{}],'properties':{'k':{'type':'integer'}},'required':['k']}",
         {"{'k':1}"},
         {"{'k':'x'}", "{}"}},
        /* Its automaton has more states than a text of a list is worth. */
        {"{'enum':['abbbbbbbbbbbbbbb','bbbbbbbbbbbbbbbb','a'],'pattern':'^[ab]*a[ab]{15}$'}",
         {"'abbbbbbbbbbbbbbb'"},
         {"'bbbbbbbbbbbbbbbb'", "'a'"}},
        {"{'allOf':[{'enum':[1,2,3]},{'enum':[2.0,3,4]}]}", {"2", "3"}, {"1", "4"}},
        {"{'enum':[1,2],'not':{'const':1}}", {"2"}, {"1"}},
        {"{'not':{'enum':[null,true]}}", {"false", "1", "{'a':null}"}, {"null", "true"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_arrays(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'array','items':{'type':'integer'}}", {"[]", "[1]", "[1,2,3]"}, {"[1,'a']", "[,]", "[1,]"}},
        {"{'type':'array','items':{'type':'boolean'},'minItems':2,'maxItems':3}",
         {"[true,false]", "[true,true,true]"},
         {"[]", "[true]", "[true,true,true,true]"}},
        {"{'type':'array','maxItems':0}", {"[]"}, {"[1]"}},
        {"{'type':'array','items':false}", {"[]"}, {"[1]"}},
        {"{'type':'array','prefixItems':[{'const':1},{'const':2}],'items':false}",
         {"[]", "[1]", "[1,2]"},
         {"[2]", "[1,2,3]", "[1,3]"}},
        {"{'type':'array','prefixItems':[{'const':1},{'const':2}],'items':{'const':3},'minItems':1,'maxItems'"
         ":4}",
         {"[1]", "[1,2]", "[1,2,3,3]"},
         {"[]", "[1,2,3,3,3]", "[1,3]"}},
        {"{'type':'array','prefixItems':[{'const':1},{'const':2}],'items':{'const':3},'minItems':3}",
         {"[1,2,3]", "[1,2,3,3]"},
         {"[1,2]"}},
        {"{'type':'array','prefixItems':[{'const':1},false]}", {"[]", "[1]"}, {"[1,2]"}},
        {"{'type':'array','items':[{'const':1}],'additionalItems':{'const':2}}",
         {"[]", "[1,2,2]"},
         {"[2]", "[1,3]"}},
        {"{'type':'array','items':[{'const':1}]}", {"[1,'x']"}, {"[2]"}},
        {"{'type':'array','items':{'type':'array','items':{'type':'null'}}}",
         {"[[],[null,null]]"},
         {"[null]"}},
        {"{'allOf':[{'prefixItems':[{'type':'integer'}]},{'items':{'minimum':3},'maxItems':2}],'type':'array'"
         "}",
         {"[3]", "[4,5]", "[4,'x']"},
         {"[2]", "['x']", "[3,2]"}},
        {"{'type':'array','not':{'maxItems':1}}", {"[1,2]"}, {"[1]", "[]"}},
        {"{'type':'array','uniqueItems':false,'items':{'const':1}}", {"[1,1]"}, {"[2]"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),   cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_numbers), cmocka_unit_test(test_strings),
                                       cmocka_unit_test(test_formats), cmocka_unit_test(test_listed),
                                       cmocka_unit_test(test_arrays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
