# The libraries that the page shows Markdown with. They become a part of the command, so they are wanted at build only.
# Where one is missing the page has none of them, and shows answers as plain text.
set(missing_page_packages "")

# file: below /usr/share. The path is in the cache, so that others can be named.
function(gumbel_find_page_library name file package)
  find_file(GUMBEL_PAGE_${name} ${file} PATHS /usr/local/share /usr/share NO_CMAKE_FIND_ROOT_PATH
    DOC "The page's library ${file}")
  if(NOT GUMBEL_PAGE_${name})
    set(missing_page_packages ${missing_page_packages} ${package} PARENT_SCOPE)
  endif()
endfunction()

gumbel_find_page_library(MARKDOWN_IT nodejs/markdown-it/lib/index.js node-markdown-it)
gumbel_find_page_library(DOMPURIFY nodejs/dompurify/dist/purify.min.js node-dompurify)
gumbel_find_page_library(HIGHLIGHT javascript/highlight.js/highlight.min.js libjs-highlight.js)
gumbel_find_page_library(KATEX javascript/katex/katex.js libjs-katex)
if(missing_page_packages)
  list(JOIN missing_page_packages " " missing_page_packages)
  message(STATUS "gumbel serve: the page shows Markdown as plain text, since libraries for it were not found "
    "(on Debian or Ubuntu: ${missing_page_packages})")
endif()
