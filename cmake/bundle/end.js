return load("markdown-it/index.js");
})();
