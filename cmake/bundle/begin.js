// SPDX-License-Identifier: Apache-2.0
// What stands before CommonJS modules in a bundle. Paths are those of files, with the package's name first.
window.markdownit = (function () {
const modules = Object.create(null), loaded = Object.create(null);

// Names of hosts by the browser's URL; they are shown as they are sent, since letters of many scripts look alike.
modules["punycode/index.js"] = function (module) {
  module.exports = { toASCII: (host) => new URL("http://" + host).hostname, toUnicode: (host) => host };
};

function resolve(name, from) {
  const parts = name.startsWith(".") ? from.split("/").slice(0, -1) : [];
  for (const part of name.split("/"))
    if (part === "..") parts.pop(); else if (part && part !== ".") parts.push(part);
  const path = parts.join("/");
  const found = [path, path + ".js", path + ".json", path + "/index.js"].find((one) => one in modules);
  if (!found) throw new Error("no module " + name + " for " + from);
  return found;
}

function load(path) {
  if (loaded[path]) return loaded[path].exports;
  const module = loaded[path] = { exports: {} };
  modules[path].call(module.exports, module, module.exports, (name) => load(resolve(name, path)));
  return module.exports;
}

