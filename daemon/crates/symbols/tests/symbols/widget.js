'use strict';
var Widget = module.exports = function Widget(options) {
  this.options = options || {};
};

Widget.prototype.render = function render(target) {
  var self = this;
  target.on('click', function (e) {
    self.count++;
  });
  return target.replace(/\{([^}]+)\}/g, function (m) { return m; });
};

function outer() {
  function inner() { return 1; }
  const x = 1 / 2 / 3;
  return inner() + x;
}

class Panel extends Widget {
  title = 'a';
  render = (t) => { return t + this.title; };
  static of(x) { return new Panel(x); }
}

export default { name: 'widget', data() { return { a: 1 }; } };
