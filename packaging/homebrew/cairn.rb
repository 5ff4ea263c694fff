# Homebrew's formula, filled in by `cargo xtask dist --only manifests` for the tap of a release. Its syntax is checked, it was not installed.
class Cairn < Formula
  desc "@SUMMARY@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/cairn-@VERSION@-aarch64-macos.tar.gz"
      sha256 "@SHA256-aarch64-macos@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/cairn-@VERSION@-x86_64-macos.tar.gz"
      sha256 "@SHA256-x86_64-macos@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/cairn-@VERSION@-aarch64-linux.tar.gz"
      sha256 "@SHA256-aarch64-linux@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/cairn-@VERSION@-x86_64-linux.tar.gz"
      sha256 "@SHA256-x86_64-linux@"
    end
  end

  def install
    # The daemon looks for cairn-sandbox beside the file that a link leads to.
    libexec.install "bin/cairn"
    libexec.install "bin/cairn-sandbox" if File.exist?("bin/cairn-sandbox")
    bin.install_symlink libexec/"cairn"
    bash_completion.install "share/bash-completion/completions/cairn"
    zsh_completion.install "share/zsh/site-functions/_cairn"
    fish_completion.install "share/fish/vendor_completions.d/cairn.fish"
    man1.install Dir["share/man/man1/*"]
    doc.install Dir["share/doc/cairn/*"]
  end

  service do
    run [opt_bin/"cairn", "serve", "--service"]
    keep_alive successful_exit: false
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/cairn --version")
    (testpath/"project/hello.py").write "def greet():\n    return 'hello'\n"
    ENV["CAIRN_HOME"] = testpath/"data"
    assert_match "Python", shell_output("#{bin}/cairn explore #{testpath}/project")
    system bin/"cairn", "stop"
  end
end
