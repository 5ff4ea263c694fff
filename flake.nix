# nix run github:OWNER/cairn -- explore .
# Its syntax is checked; it was not built.
{
  description = "Local daemon that gives coding agents search, exploration and audited tools";

  inputs.nixpkgs.url = "https://github.com/NixOS/nixpkgs/archive/nixos-unstable.tar.gz";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      workspace = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "cairn";
          version = workspace.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [
            "--package"
            "cairn-daemon"
            "--bins"
          ];
          # The tests start daemons, browsers and containers.
          doCheck = false;
          nativeBuildInputs = [
            pkgs.installShellFiles
            pkgs.makeWrapper
          ];
          # bubblewrap is looked for in fixed folders; git in the PATH.
          postInstall = ''
            mkdir -p $out/libexec/cairn
            mv $out/bin/cairn $out/bin/cairn-sandbox $out/libexec/cairn/
            makeWrapper $out/libexec/cairn/cairn $out/bin/cairn --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.git ]}
            installShellCompletion --cmd cairn \
              --bash <($out/libexec/cairn/cairn completions bash) \
              --zsh <($out/libexec/cairn/cairn completions zsh) \
              --fish <($out/libexec/cairn/cairn completions fish)
          '';
          meta = {
            description = "Local daemon that gives coding agents search, exploration and audited tools";
            homepage = workspace.repository;
            license = [
              pkgs.lib.licenses.mit
              pkgs.lib.licenses.asl20
            ];
            mainProgram = "cairn";
          };
        };
      });
    };
}
