# A file's bytes as C:  cmake -DINPUT=text.txt -DOUTPUT=text.c -DNAME=cli_text -DHEADER=cli/text.h -P Embed.cmake.
# The header declares NAME and NAME_length.
include(${CMAKE_CURRENT_LIST_DIR}/EmbedBytes.cmake)
gumbel_read_bytes(bytes ${INPUT})
file(WRITE ${OUTPUT} "/* Made from ${NAME}'s file by cmake/Embed.cmake. */\n#include \"${HEADER}\"\n
const unsigned char ${NAME}[] = {\n${bytes}\n};\nconst size_t ${NAME}_length = sizeof ${NAME};\n")
