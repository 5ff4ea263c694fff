# Prints the edges of files that Ruby loads: TREE FEATURE... -> importer, target.
require 'set'
ROOT = File.realpath(ARGV.shift) + '/'
Dir.glob(ROOT + '{lib,*/lib}').each { |folder| $LOAD_PATH.unshift(folder) }
EDGES = Set.new

module Recorder
  def require(name)
    record(name, caller_locations(1, 1).first.path) { super }
  rescue LoadError
    false # a gem that is not installed
  end

  private

  # The file is the one that a feature of the load path names, loaded now or before.
  def record(name, from)
    result = yield
    return result unless from && File.exist?(from)

    path = $LOAD_PATH.lazy.flat_map { |f| ["#{f}/#{name}", "#{f}/#{name}.rb"] }.find { |p| File.file?(p) }
    EDGES << [File.realpath(from), File.realpath(path)] if path
    result
  end
end
Object.prepend(Recorder)

ARGV.each do |feature|
  require feature
rescue LoadError, StandardError => e
  warn "#{feature}: #{e.class} #{e.message[0, 80]}"
end
own = ->(path) { path.start_with?(ROOT) && path.delete_prefix(ROOT) }
files = $LOADED_FEATURES.filter_map { |f| own.(f) }
files.each { |f| puts "file\t#{f}" }
EDGES.each { |a, b| puts "edge\t#{own.(a)}\t#{own.(b)}" if own.(a) && own.(b) }
