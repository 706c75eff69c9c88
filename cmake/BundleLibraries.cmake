# The page's libraries as one compressed script:  cmake -DMARKDOWN_IT=.../markdown-it/lib/index.js -DDOMPURIFY=...
#   -DHIGHLIGHT=... -DKATEX=... -DLICENCES=licences.txt -DOUTPUT=libraries.js.gz -P BundleLibraries.cmake
# Without MARKDOWN_IT the script is empty. markdown-it comes as CommonJS modules: each file becomes a function in a
# registry, and a small require finds it there.
get_filename_component(script ${OUTPUT} NAME_WLE)
get_filename_component(folder ${OUTPUT} DIRECTORY)
set(script ${folder}/${script})

function(append_module key file)
  file(READ ${file} text)
  if(file MATCHES "\\.json$")
    set(text "module.exports = ${text}")
  endif()
  file(APPEND ${script} "modules[\"${key}\"] = function (module, exports, require) {\n${text}\n};\n")
endfunction()

# The modules of a package, by PACKAGE/PATH.
function(append_package name folder)
  file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*.js ${folder}/*.json)
  list(FILTER files EXCLUDE REGEX "^(dist|bin|node_modules)/|package\\.json$|pkgjs")
  list(SORT files)
  foreach(file IN LISTS files)
    append_module(${name}/${file} ${folder}/${file})
  endforeach()
endfunction()

function(append_markdown_it)
  get_filename_component(lib ${MARKDOWN_IT} DIRECTORY)
  get_filename_component(root ${lib} DIRECTORY)
  get_filename_component(beside ${root} DIRECTORY)
  file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bundle/begin.js text)
  file(APPEND ${script} "${text}")
  append_package(markdown-it ${root})
  foreach(package linkify-it mdurl uc.micro)
    foreach(folder ${root}/node_modules/${package} ${beside}/${package})
      if(EXISTS ${folder}/index.js)
        append_package(${package} ${folder})
        break()
      endif()
    endforeach()
  endforeach()
  file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bundle/end.js text)
  file(APPEND ${script} "${text}")
endfunction()

function(append_script file before after)
  file(READ ${file} text)
  string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" text "${text}")
  file(APPEND ${script} "${before}${text}${after}")
endfunction()

file(WRITE ${script} "")
if(MARKDOWN_IT)
  file(READ ${LICENCES} text)
  file(APPEND ${script} "/*!\n${text}*/\n")
  append_markdown_it()
  # Debian 12's package of DOMPurify reads a shadowNode that it nowhere declares, where FORCE_BODY was meant. Without a
  # __depth it is as if that option were off.
  append_script(${DOMPURIFY} "(function (shadowNode) {\n" "\n})({});\n")
  append_script(${HIGHLIGHT} "" "\n;\n")
  append_script(${KATEX} "" "\n;\n")
endif()
set(ENV{SOURCE_DATE_EPOCH} 0) # no time in the bytes
file(ARCHIVE_CREATE OUTPUT ${OUTPUT} PATHS ${script} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
