# A file's bytes as C:  cmake -DINPUT=page.html -DOUTPUT=page_html.c -DNAME=server_page_html
#   -DHEADER=server/page/page.h -P Embed.cmake. The header declares NAME and NAME_length.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(....................................................................................................)"
  "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made from ${NAME}'s file by cmake/Embed.cmake. */\n#include \"${HEADER}\"\n
const unsigned char ${NAME}[] = {\n${bytes}\n};\nconst size_t ${NAME}_length = sizeof ${NAME};\n")
