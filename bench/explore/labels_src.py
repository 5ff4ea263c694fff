"""Hand labels of five repositories. build_labels.py checks them against the pinned trees.

A path in `entrypoints_required` or `top_files_core` may be a list: any one of its members counts.
`entrypoints_acceptable`, `entrypoints_wrong` and `components_acceptable` are patterns: `*` stays
within a folder, `**` crosses folders. A command may contain `*`.
`edges` and `no_edges` are rows `from -> to : regular expression`, where `short` abbreviates
component paths. The expression must match at least one line of non-test code in `from` for an
edge, and none for a no_edge. `top_files_neutral` names root manifests, which are skipped in the
list of top files before it is counted.
"""


def paths(prefix, names):
    return [prefix + name for name in names.split()]


def component(spellings, *keywords):
    return {"paths": spellings.split(), "role": list(keywords)}


LABELS = {}

# --------------------------------------------------------------------------------- okhttp
OK = "okhttp/src/commonJvmAndroid/kotlin/okhttp3/"
LABELS["okhttp"] = {
    "kind": "Kotlin library, Gradle multi-module, for the JVM and Android",
    "entrypoints_required": [
        OK + "OkHttpClient.kt",
        ["okcurl/src/main/kotlin/okhttp3/curl/MainCommandLine.kt",
         "okcurl/src/main/kotlin/okhttp3/curl/Main.kt"],
        "mockwebserver/src/main/kotlin/mockwebserver3/MockWebServer.kt",
    ],
    "entrypoints_acceptable": paths(OK, "OkHttp.kt Call.kt Request.kt WebSocket.kt") + [
        "okhttp/src/*Main/kotlin/okhttp3/OkHttp.*.kt",
        "okhttp/src/androidMain/kotlin/okhttp3/internal/platform/PlatformInitializer.kt",
        "okhttp/src/jvmMain/kotlin/okhttp3/internal/graal/OkHttpFeature.kt",
        "okcurl/okcurl",
        "okcurl/src/main/kotlin/okhttp3/curl/Main*.kt",
        "okhttp-brotli/src/main/kotlin/okhttp3/brotli/Brotli*.kt",
        "okhttp-zstd/src/main/kotlin/okhttp3/zstd/Zstd.kt",
        "okhttp-coroutines/src/main/kotlin/okhttp3/coroutines/ExecuteAsync.kt",
        "okhttp-dnsoverhttps/src/main/kotlin/okhttp3/dnsoverhttps/DnsOverHttps.kt",
        "okhttp-java-net-cookiejar/src/main/kotlin/okhttp3/java/net/cookiejar/JavaNetCookieJar.kt",
        "okhttp-logging-interceptor/src/main/kotlin/okhttp3/logging/*.kt",
        "okhttp-sse/src/main/kotlin/okhttp3/sse/EventSource*.kt",
        "okhttp-tls/src/main/kotlin/okhttp3/tls/*.kt",
        "okhttp-urlconnection/src/main/kotlin/okhttp3/*.kt",
        "mockwebserver-deprecated/src/main/kotlin/okhttp3/mockwebserver/MockWebServer.kt",
        "mockwebserver-junit4/src/main/kotlin/mockwebserver3/junit4/MockWebServerRule.kt",
        "mockwebserver-junit5/src/main/kotlin/mockwebserver3/junit5/StartStop.kt",
        "okhttp-idna-mapping-table/src/main/kotlin/**/GenerateIdnaMappingTableCode.kt",
        "**/src/main/java9/module-info.java",
        "okhttp/src/jvmMain/java9/module-info.java",
    ],
    "entrypoints_wrong": [
        "**/*Test/**", "**/src/test/**", "samples/**", "android-test/**", "android-test-app/**",
        "module-tests/**", "maven-tests/**", "regression-test/**", "container-tests/**",
        "native-image-tests/**", "fuzzing/**", "build-logic/**", "docs/**", "*.sh",
        "okhttp-testing-support/**",
    ],
    "top_files_good": paths(OK, """
        Address.kt Authenticator.kt Cache.kt CacheControl.kt Call.kt Callback.kt
        CertificatePinner.kt ConnectionPool.kt ConnectionSpec.kt Cookie.kt CookieJar.kt
        Dispatcher.kt Dns.kt EventListener.kt Headers.kt HttpUrl.kt Interceptor.kt MediaType.kt
        MultipartBody.kt OkHttpClient.kt Protocol.kt Request.kt RequestBody.kt Response.kt
        ResponseBody.kt Route.kt WebSocket.kt""") + paths(OK + "internal/", """
        cache/CacheInterceptor.kt cache/CacheStrategy.kt cache/DiskLruCache.kt
        concurrent/TaskRunner.kt concurrent/TaskQueue.kt
        connection/ConnectInterceptor.kt connection/ConnectPlan.kt connection/Exchange.kt
        connection/ExchangeFinder.kt connection/FastFallbackExchangeFinder.kt
        connection/RealCall.kt connection/RealConnection.kt connection/RealConnectionPool.kt
        connection/RealRoutePlanner.kt connection/RoutePlanner.kt connection/RouteSelector.kt
        http/BridgeInterceptor.kt http/CallServerInterceptor.kt http/ExchangeCodec.kt
        http/RealInterceptorChain.kt http/RetryAndFollowUpInterceptor.kt
        http1/Http1ExchangeCodec.kt http2/Hpack.kt http2/Http2Connection.kt
        http2/Http2ExchangeCodec.kt http2/Http2Reader.kt http2/Http2Stream.kt
        http2/Http2Writer.kt platform/Platform.kt ws/RealWebSocket.kt""") + [
        "mockwebserver/src/main/kotlin/mockwebserver3/MockWebServer.kt",
        "mockwebserver/src/main/kotlin/mockwebserver3/MockResponse.kt",
        "okcurl/src/main/kotlin/okhttp3/curl/Main.kt",
        "okhttp-logging-interceptor/src/main/kotlin/okhttp3/logging/HttpLoggingInterceptor.kt",
        "okhttp-tls/src/main/kotlin/okhttp3/tls/HeldCertificate.kt",
        "okhttp-tls/src/main/kotlin/okhttp3/tls/HandshakeCertificates.kt",
        "okhttp-sse/src/main/kotlin/okhttp3/sse/internal/RealEventSource.kt",
        "okhttp-dnsoverhttps/src/main/kotlin/okhttp3/dnsoverhttps/DnsOverHttps.kt",
        "docs/contribute/concurrency.md", "docs/features/interceptors.md",
        "docs/features/connections.md", "docs/features/calls.md",
    ],
    "top_files_neutral": ["build.gradle.kts", "settings.gradle.kts", "gradle.properties"],
    "top_files_core": paths(OK, """
        OkHttpClient.kt Request.kt Response.kt Call.kt Interceptor.kt""") + paths(
        OK + "internal/", """
        connection/RealCall.kt connection/Exchange.kt connection/RealConnection.kt
        connection/RealConnectionPool.kt http/RealInterceptorChain.kt
        http/CallServerInterceptor.kt http2/Http2Connection.kt""") + [
        paths(OK + "internal/connection/",
              "RealRoutePlanner.kt RoutePlanner.kt ExchangeFinder.kt "
              "FastFallbackExchangeFinder.kt"),
        paths(OK, "internal/cache/CacheInterceptor.kt Cache.kt"),
    ],
    "evidence": "README, CONTRIBUTING, docs/contribute/concurrency.md (names the connection "
                "classes), settings.gradle.kts, build scripts of the modules, Module.md and "
                "README files of the modules, build workflow, the interceptor list of "
                "RealCall, import lines",
    "build_commands": [
        "./gradlew build*", "./gradlew assemble*", "./gradlew clean build*",
        "./gradlew clean assemble*", "./gradlew clean check*", "./gradlew check*",
        "./gradlew okcurl:nativeBuild*", "./gradlew :okcurl:*uild*",
        "./gradlew :okhttp:assemble*", "./gradlew :okhttp:build*", "gradle build*",
    ],
    "test_commands": [
        "./gradlew test*", "./gradlew allTests*", "./gradlew check*", "./gradlew clean check*",
        "./gradlew jvmTest*", "./gradlew :okhttp:*est*", "./gradlew clean test*", "gradle test*",
        "./gradlew okhttp:*est*", "gradle check*",
    ],
    "purpose": {
        "groups": [["http"], ["client"], ["java", "jvm", "kotlin", "android"]],
        "bad": ["project website", "modern applications network", "snapshot"],
        "example": "An HTTP client for the JVM and Android, efficient by default.",
    },
    "components": [
        component("okhttp okhttp/src/commonJvmAndroid okhttp/src/commonJvmAndroid/kotlin "
                  + OK.rstrip("/"), "http client", "core", "client library", "main library",
                  "request", "call", "client for", "2 client"),
        component(OK + "internal/connection", "pool", "route", "socket", "reuse", "establish",
                  "exchange", "realcall"),
        component(OK + "internal/http", "interceptor", "chain", "retry", "redirect", "header",
                  "semantics", "status line"),
        component(OK + "internal/http2", "frame", "framing", "hpack", "multiplex", "stream",
                  "http 2"),
        component(OK + "internal/cache", "disk", "lru", "response", "rfc 9111", "rfc 7234"),
        component(OK + "internal/ws", "websocket", "web socket"),
        component("mockwebserver", "script", "test", "fake", "canned", "mock http"),
        component("okhttp-tls", "certificate", "handshake", "x.509", "https", "self signed",
                  "transport layer security", "using tls", "tls api"),
        component("okhttp-logging-interceptor", "logs", "log http", "request and response",
                  "print", "log request", "requests and responses"),
        component("okhttp-sse", "server sent", "event stream", "eventsource"),
        component("okhttp-dnsoverhttps", "doh", "resolv", "dns over https", "dns lookup"),
        component("okcurl", "command line", "cli", "curl clone", "curl like", "curl for"),
    ],
    "components_acceptable": [
        "okhttp/src", "okhttp/src/*", "okhttp/src/**", "okhttp-*", "okhttp-*/**",
        "mockwebserver-*", "mockwebserver/**", "mockwebserver-*/**", "okcurl/**", "samples",
        "samples/*", "android-test", "android-test-app", "build-logic", "docs", "fuzzing",
        "container-tests", "module-tests", "maven-tests", "native-image-tests",
        "regression-test", "gradle",
    ],
    "short": {f"internal/{name}": f"{OK}internal/{name}"
              for name in ("connection", "http", "http2", "cache", "ws")},
    "edges": r"""
        okhttp -> internal/connection : import okhttp3\.internal\.connection\.
        okhttp -> internal/cache : import okhttp3\.internal\.cache\.
        okhttp -> internal/ws : import okhttp3\.internal\.ws\.
        internal/connection -> internal/http2 : import okhttp3\.internal\.http2\.
        internal/connection -> internal/http : import okhttp3\.internal\.http\.
        internal/cache -> internal/http : import okhttp3\.internal\.http\.
        internal/http2 -> internal/http : import okhttp3\.internal\.http\.
        internal/ws -> internal/connection : import okhttp3\.internal\.connection\.
        mockwebserver -> okhttp : import okhttp3\.[A-Z]
        okhttp-logging-interceptor -> okhttp : import okhttp3\.[A-Z]
        okhttp-sse -> okhttp : import okhttp3\.[A-Z]
        okhttp-tls -> okhttp : import okhttp3\.[A-Z]
        okhttp-dnsoverhttps -> okhttp : import okhttp3\.[A-Z]
        okcurl -> okhttp : import okhttp3\.[A-Z]
        okcurl -> okhttp-logging-interceptor : import okhttp3\.logging\.
    """,
    "no_edges": r"""
        internal/http2 -> internal/cache : okhttp3\.internal\.cache
        internal/http2 -> internal/ws : okhttp3\.internal\.ws
        internal/cache -> internal/ws : okhttp3\.internal\.ws
        internal/ws -> internal/cache : okhttp3\.internal\.cache
        okhttp -> okcurl : okhttp3\.curl
        okhttp-sse -> okhttp-logging-interceptor : okhttp3\.logging
        okhttp-tls -> okhttp-dnsoverhttps : okhttp3\.dnsoverhttps
        okhttp-logging-interceptor -> okhttp-sse : okhttp3\.sse
    """,
    "conventions": [
        ["spotless", "ktlint", "checkstyle"],
        ["cla", "contributor license"],
        ["public api", "binary compat", "apicheck", "api dump", ".api file"],
        ["java 8", "jdk 8", "jvm 1.8", "java 1.8", "api level 21", "api 21", "android 5"],
    ],
    "doubts": "Gradle names differ from folders (mockwebserver is :mockwebserver3, the "
              "deprecated one is :mockwebserver). okhttp's own tests use most of the other "
              "modules, so those pairs are in neither edge list. okhttp-testing-support, the "
              "JUnit modules, http1, tls, dns and platform are neutral. `check` counts as a "
              "build too, because CONTRIBUTING gives nothing else. The facades of the small "
              "published modules are acceptable, not required; MockWebServer is required, "
              "because the README presents it as a second library.",
}

# ------------------------------------------------------------------------------- jellyfin
EMBY = "Emby.Server.Implementations/"
LABELS["jellyfin"] = {
    "kind": "C# server application, .NET solution of many projects",
    "entrypoints_required": ["Jellyfin.Server/Program.cs"],
    "entrypoints_acceptable": [
        "Jellyfin.Server/Startup.cs", "Jellyfin.Server/CoreAppHost.cs",
        "Jellyfin.Server/StartupOptions.cs", "Jellyfin.Server/ServerSetupApp/SetupServer.cs",
        EMBY + "ApplicationHost.cs", "Jellyfin.Api/Controllers/*.cs",
        EMBY + "EntryPoints/*.cs", "src/*/*Host.cs", "Jellyfin.Server/Helpers/StartupHelpers.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/JellyfinDbContext.cs",
    ],
    "entrypoints_wrong": [
        "tests/**", "fuzz/**", "deployment/**", "**/Migrations/**", ".devcontainer/**",
        "src/Jellyfin.CodeAnalysis/**", "bump_version", "**/AssemblyInfo.cs",
    ],
    "top_files_good": paths("Jellyfin.Server/", """
        Program.cs Startup.cs CoreAppHost.cs StartupOptions.cs Helpers/StartupHelpers.cs
        Extensions/ApiServiceCollectionExtensions.cs ServerSetupApp/SetupServer.cs
        Migrations/JellyfinMigrationService.cs""") + paths(EMBY, """
        ApplicationHost.cs Library/LibraryManager.cs Library/MediaSourceManager.cs
        Library/UserDataManager.cs Library/UserViewManager.cs
        Library/Resolvers/Movies/MovieResolver.cs Session/SessionManager.cs Dto/DtoService.cs
        Plugins/PluginManager.cs IO/ManagedFileSystem.cs IO/LibraryMonitor.cs
        Localization/LocalizationManager.cs ScheduledTasks/TaskManager.cs
        ScheduledTasks/ScheduledTaskWorker.cs SyncPlay/SyncPlayManager.cs SyncPlay/Group.cs
        Playlists/PlaylistManager.cs Collections/CollectionManager.cs
        Updates/InstallationManager.cs TV/TVSeriesManager.cs
        Configuration/ServerConfigurationManager.cs""") + paths("Jellyfin.Api/", """
        Controllers/ItemsController.cs Controllers/LibraryController.cs
        Controllers/UserLibraryController.cs Controllers/DynamicHlsController.cs
        Controllers/VideosController.cs Controllers/ImageController.cs
        Controllers/UserController.cs Controllers/SessionController.cs
        Controllers/MediaInfoController.cs Controllers/PlaystateController.cs
        BaseJellyfinApiController.cs Helpers/StreamingHelpers.cs Helpers/DynamicHlsHelper.cs
        Helpers/MediaInfoHelper.cs""") + paths("Jellyfin.Server.Implementations/", """
        Item/BaseItemRepository.cs Item/BaseItemRepository.TranslateQuery.cs
        Item/BaseItemRepository.Querying.cs Item/BaseItemRepository.QueryBuilding.cs
        Item/ItemPersistenceService.cs Item/PeopleRepository.cs Users/UserManager.cs
        Devices/DeviceManager.cs Trickplay/TrickplayManager.cs
        FullSystemBackup/BackupService.cs Extensions/ServiceCollectionExtensions.cs""") + paths(
        "MediaBrowser.", """
        Controller/Entities/BaseItem.cs Controller/Entities/Folder.cs
        Controller/Entities/Video.cs Controller/Entities/TV/Series.cs
        Controller/Entities/InternalItemsQuery.cs Controller/Entities/UserViewBuilder.cs
        Controller/Library/ILibraryManager.cs Controller/Session/ISessionManager.cs
        Controller/Session/SessionInfo.cs Controller/Providers/IProviderManager.cs
        Controller/MediaEncoding/EncodingHelper.cs Controller/MediaEncoding/EncodingJobInfo.cs
        Controller/MediaEncoding/IMediaEncoder.cs Model/Dlna/StreamBuilder.cs
        Model/Dlna/StreamInfo.cs Model/Dto/BaseItemDto.cs Model/Dto/MediaSourceInfo.cs
        Model/Entities/MediaStream.cs Model/Configuration/ServerConfiguration.cs
        Common/IApplicationHost.cs Common/Plugins/BasePlugin.cs Common/Plugins/IPlugin.cs
        Providers/Manager/ProviderManager.cs Providers/Manager/MetadataService.cs
        Providers/MediaInfo/FFProbeVideoInfo.cs Providers/Plugins/Tmdb/TmdbClientManager.cs
        MediaEncoding/Encoder/MediaEncoder.cs MediaEncoding/Probing/ProbeResultNormalizer.cs
        MediaEncoding/Subtitles/SubtitleEncoder.cs
        MediaEncoding/Transcoding/TranscodeManager.cs""") + [
        "Emby.Naming/Common/NamingOptions.cs", "Emby.Naming/Video/VideoListResolver.cs",
        "Emby.Naming/TV/EpisodePathParser.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/JellyfinDbContext.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/Entities/BaseItemEntity.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/Entities/User.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/IJellyfinDatabaseProvider.cs",
        "src/Jellyfin.Database/Jellyfin.Database.Providers.Sqlite/SqliteDatabaseProvider.cs",
        "src/Jellyfin.Database/readme.md",
        "src/Jellyfin.LiveTv/LiveTvManager.cs", "src/Jellyfin.LiveTv/Guide/GuideManager.cs",
        "src/Jellyfin.LiveTv/Recordings/RecordingsManager.cs",
        "src/Jellyfin.LiveTv/Channels/ChannelManager.cs",
        "src/Jellyfin.Networking/Manager/NetworkManager.cs",
    ],
    "top_files_neutral": ["Jellyfin.sln", "Directory.*.props", "global.json"],
    "top_files_core": [
        "Jellyfin.Server/Program.cs", "Jellyfin.Server/Startup.cs", EMBY + "ApplicationHost.cs",
        EMBY + "Library/LibraryManager.cs", EMBY + "Session/SessionManager.cs",
        EMBY + "Dto/DtoService.cs", "MediaBrowser.Controller/Entities/BaseItem.cs",
        "MediaBrowser.Controller/MediaEncoding/EncodingHelper.cs",
        "MediaBrowser.Providers/Manager/ProviderManager.cs",
        "MediaBrowser.MediaEncoding/Encoder/MediaEncoder.cs",
        paths("Jellyfin.Server.Implementations/Item/BaseItemRepository",
              ".cs .TranslateQuery.cs .Querying.cs .QueryBuilding.cs"),
        "src/Jellyfin.Database/Jellyfin.Database.Implementations/JellyfinDbContext.cs",
        paths("Jellyfin.Api/Controllers/",
              "ItemsController.cs LibraryController.cs UserLibraryController.cs"),
    ],
    "evidence": "README (development section), the project files and their references, "
                "Directory.Build.props, workflows, pull request template, Program.cs, Startup.cs, "
                "src/Jellyfin.Database/readme.md, file lengths, using lines per project; the "
                "contributing guide is a web page, not in the tree",
    "build_commands": [
        "dotnet build", "dotnet build *", "dotnet publish", "dotnet publish *",
    ],
    "test_commands": ["dotnet test", "dotnet test *"],
    "purpose": {
        "groups": [
            ["media"],
            ["server", "backend", "back end"],
            ["stream", "manag", "organi", "collect"],
            ["free software", "open source", "self host", ".net"],
        ],
        "bad": ["translation", "quest", "want to get started", "opencollective"],
        "example": "The backend server of Jellyfin, a free software media system that manages "
                   "and streams your media.",
    },
    "components": [
        component("Jellyfin.Server", "executable", "startup", "start up", "entry point", "host",
                  "bootstrap", "composition root", "starts", "main program", "main project"),
        component("Jellyfin.Api", "controllers", "rest", "endpoint", "http api", "web api",
                  "asp.net", "routes"),
        component("Emby.Server.Implementations", "library", "session", "application host",
                  "manager", "core service", "core implementation", "scheduled task", "plugin"),
        component("Jellyfin.Server.Implementations", "repositor", "user", "persist",
                  "entity framework", "ef core", "database", "data access", "trickplay",
                  "device", "activity"),
        component("MediaBrowser.Controller", "interface", "abstraction", "entit", "domain",
                  "contract", "baseitem", "base item"),
        component("MediaBrowser.Model", "dto", "data transfer", "shared", "plain",
                  "configuration class", "enum", "poco", "data class", "data structure",
                  "api models", "data model"),
        component("MediaBrowser.Common", "shared", "util", "plugin", "base class", "helper",
                  "interface", "networking"),
        component("MediaBrowser.Providers", "metadata", "tmdb", "musicbrainz", "omdb", "artwork",
                  "image", "fetch"),
        component("MediaBrowser.MediaEncoding", "ffmpeg", "transcod", "probe", "probing",
                  "subtitle"),
        component("Emby.Naming", "file name", "filename", "path", "pars", "recogni", "episode",
                  "season"),
        component("src/Jellyfin.Database src/Jellyfin.Database/Jellyfin.Database.Implementations",
                  "entity framework", "ef core", "efcore", "sqlite", "schema", "migration",
                  "dbcontext", "entit", "persist"),
        component("src/Jellyfin.LiveTv", "tuner", "guide", "channel", "record", "epg", "dvr"),
    ],
    "components_acceptable": [
        "Emby.Photos", "Jellyfin.Data", "MediaBrowser.LocalMetadata", "MediaBrowser.XbmcMetadata",
        "src", "src/*", "src/Jellyfin.Database/*", "tests", "tests/*", "fuzz", "deployment",
        "MediaBrowser.*/**", "Jellyfin.*/**", "Emby.*/**", "src/Jellyfin.LiveTv/**",
    ],
    "short": {"JSI": "Jellyfin.Server.Implementations"},
    "edges": r"""
        Jellyfin.Server -> Jellyfin.Api : ^using Jellyfin\.Api
        Jellyfin.Server -> Emby.Server.Implementations : ^using Emby\.Server\.Implementations
        Jellyfin.Server -> JSI : ^using Jellyfin\.Server\.Implementations\.Extensions
        Jellyfin.Server -> src/Jellyfin.LiveTv : ^using Jellyfin\.LiveTv
        Jellyfin.Api -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
        Emby.Server.Implementations -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
        Emby.Server.Implementations -> Emby.Naming : ^using Emby\.Naming
        Emby.Server.Implementations -> MediaBrowser.Providers : ^using MediaBrowser\.Providers
        JSI -> src/Jellyfin.Database : ^using Jellyfin\.Database\.Implementations
        JSI -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
        MediaBrowser.Controller -> MediaBrowser.Model : ^using MediaBrowser\.Model
        MediaBrowser.Controller -> MediaBrowser.Common : ^using MediaBrowser\.Common
        MediaBrowser.Providers -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
        MediaBrowser.MediaEncoding -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
        src/Jellyfin.LiveTv -> MediaBrowser.Controller : ^using MediaBrowser\.Controller
    """,
    "no_edges": r"""
        MediaBrowser.Model -> MediaBrowser.Controller : MediaBrowser\.Controller
        MediaBrowser.Common -> MediaBrowser.Controller : MediaBrowser\.Controller
        MediaBrowser.Controller -> Jellyfin.Api : Jellyfin\.Api
        MediaBrowser.Controller -> Emby.Server.Implementations : Emby\.Server\.Implementations
        Jellyfin.Api -> JSI : Jellyfin\.Server\.Implementations\.(?!SystemBackupService)
        Jellyfin.Api -> Emby.Server.Implementations : Emby\.Server\.Implementations
        Emby.Naming -> MediaBrowser.Controller : MediaBrowser\.Controller
        src/Jellyfin.LiveTv -> Jellyfin.Api : Jellyfin\.Api
    """,
    "conventions": [
        ["dotnet format", "stylecop", "editorconfig"],
        ["warnings as errors", "treatwarningsaserrors", "warnings are errors"],
        [".net 10", "net10", "dotnet 10", "sdk 10"],
        ["imperative", "pull request title", "pr title"],
    ],
    "doubts": "Folder names are historical: MediaBrowser.Controller holds interfaces and "
              "entities, not web controllers. Two namespaces do not follow their project: "
              "MediaBrowser.Controller declares Jellyfin.Server.Implementations."
              "SystemBackupService (so the `using` of it in Jellyfin.Api does not make that "
              "project depend on Jellyfin.Server.Implementations), and the SQLite "
              "migrations declare Jellyfin.Server.Implementations.Migrations. Several references "
              "between projects are transitive.",
}

# ------------------------------------------------------------------------------- composer
CO = "src/Composer/"
LABELS["composer"] = {
    "kind": "PHP command-line application and library",
    "entrypoints_required": ["bin/composer"],
    "entrypoints_acceptable": [
        "src/bootstrap.php", "bin/compile", CO + "Console/Application.php", CO + "Composer.php",
        CO + "Factory.php", CO + "Installer.php", CO + "Compiler.php", CO + "Command/*Command.php",
        CO + "InstalledVersions.php", CO + "Autoload/ClassLoader.php",
        CO + "Plugin/PluginInterface.php",
    ],
    "entrypoints_wrong": ["tests/**", "doc/**", "phpstan/**", "res/**", ".php-cs-fixer.php",
                          CO + "PHPStan/**"],
    "top_files_good": ["bin/composer"] + paths(CO, """
        Composer.php Factory.php Installer.php Config.php Cache.php InstalledVersions.php
        PartialComposer.php Console/Application.php Command/BaseCommand.php
        Command/InstallCommand.php Command/UpdateCommand.php Command/RequireCommand.php
        Command/CreateProjectCommand.php Command/ShowCommand.php Command/ConfigCommand.php
        Command/InitCommand.php Command/DiagnoseCommand.php
        DependencyResolver/Solver.php DependencyResolver/PoolBuilder.php
        DependencyResolver/Pool.php DependencyResolver/PoolOptimizer.php
        DependencyResolver/Rule.php DependencyResolver/RuleSet.php
        DependencyResolver/RuleSetGenerator.php DependencyResolver/Request.php
        DependencyResolver/Problem.php DependencyResolver/Transaction.php
        DependencyResolver/DefaultPolicy.php DependencyResolver/LockTransaction.php
        Repository/ComposerRepository.php Repository/RepositoryInterface.php
        Repository/RepositoryManager.php Repository/RepositorySet.php
        Repository/RepositoryFactory.php Repository/PlatformRepository.php
        Repository/VcsRepository.php Repository/ArrayRepository.php
        Repository/InstalledRepository.php Repository/Vcs/GitHubDriver.php
        Repository/Vcs/GitDriver.php Package/Package.php Package/PackageInterface.php
        Package/BasePackage.php Package/Locker.php Package/RootPackage.php
        Package/Loader/ArrayLoader.php Package/Loader/RootPackageLoader.php
        Package/Loader/ValidatingArrayLoader.php Package/Version/VersionGuesser.php
        Package/Version/VersionSelector.php Package/Version/VersionParser.php
        Installer/InstallationManager.php Installer/LibraryInstaller.php
        Installer/PluginInstaller.php Installer/BinaryInstaller.php
        Installer/InstallerInterface.php Downloader/DownloadManager.php
        Downloader/FileDownloader.php Downloader/GitDownloader.php Downloader/ZipDownloader.php
        Downloader/VcsDownloader.php Autoload/AutoloadGenerator.php Autoload/ClassLoader.php
        EventDispatcher/EventDispatcher.php Script/ScriptEvents.php Plugin/PluginManager.php
        Plugin/PluginInterface.php IO/IOInterface.php IO/ConsoleIO.php Json/JsonFile.php
        Json/JsonManipulator.php Util/HttpDownloader.php Util/Http/CurlDownloader.php
        Util/Filesystem.php Util/ProcessExecutor.php Util/Git.php Util/Loop.php
        Util/AuthHelper.php Advisory/Auditor.php Policy/PolicyConfig.php""") + [
        "doc/articles/plugins.md", "res/composer-schema.json",
    ],
    "top_files_neutral": ["composer.json", "composer.lock"],
    "top_files_core": paths(CO, """
        Console/Application.php Factory.php Composer.php Installer.php
        DependencyResolver/Solver.php DependencyResolver/PoolBuilder.php
        Repository/ComposerRepository.php Package/Locker.php Installer/InstallationManager.php
        Downloader/DownloadManager.php Autoload/AutoloadGenerator.php Config.php""") + [
        paths(CO + "Command/", "InstallCommand.php UpdateCommand.php RequireCommand.php"),
        paths(CO + "Package/", "PackageInterface.php Package.php"),
    ],
    "evidence": "README, .github/CONTRIBUTING.md, pull request template, composer.json (bin, "
                "autoload, scripts), bin/composer, Factory and Installer use lines, workflows, "
                ".php-cs-fixer.php, chapter titles under doc, use lines per folder",
    "build_commands": [
        "composer install*", "bin/composer install*",
        "./bin/composer install*", "php bin/composer install*", "php ../composer.phar install*",
        "php composer.phar install*", "composer compile*", "composer run compile*",
        "composer run-script compile*", "php -dphar.readonly=0 bin/compile*",
        "php -d phar.readonly=0 bin/compile*", "php bin/compile*", "bin/compile*",
    ],
    "test_commands": [
        "vendor/bin/simple-phpunit*", "./vendor/bin/simple-phpunit*",
        "php vendor/bin/simple-phpunit*", "composer test*", "composer run test*",
        "composer run-script test*", "bin/composer test*", "php bin/composer test*",
    ],
    "purpose": {
        "groups": [["dependenc", "package"], ["php"], ["manag", "install", "declare"]],
        "bad": ["official instructions", "announcements", "stack overflow"],
        "example": "A dependency manager for PHP: it declares, resolves and installs the "
                   "packages of a project.",
    },
    "components": [
        component(CO + "Command", "install", "require", "update", "cli command", "command line",
                  "subcommand", "symfony", "one class"),
        component(CO + "Console", "application", "symfony", "argument", "cli entry",
                  "output format", "runs commands", "bootstrap"),
        component(CO + "DependencyResolver", "sat", "solver", "solv", "rule", "pool",
                  "constraint", "which version", "transaction"),
        component(CO + "Repository", "packagist", "package source", "sources of packages", "vcs",
                  "metadata", "lookup", "look up", "find package", "git"),
        component(CO + "Package", "model", "version", "lock", "loader", "dump", "alias",
                  "represent", "archiv", "information"),
        component(CO + "Downloader", "downloads", "downloading", "zip", "archive", "fetch",
                  "extract", "unpack", "checkout", "git"),
        component(CO + "Installer", "installs", "uninstall", "binary", "binaries", "vendor",
                  "package type", "installation", "install packages", "operation"),
        component(CO + "Autoload", "class map", "classmap", "psr", "class loader", "autoloader",
                  "generat"),
        component(CO + "Plugin", "extension", "third party", "capabilit", "hook", "extend",
                  "loads", "activat"),
        component(CO + "EventDispatcher", "script", "listener", "hook", "events", "callback",
                  "subscriber"),
        component(CO + "Util", "filesystem", "process", "http", "git", "helper", "shared",
                  "common", "utilit"),
        component(CO + "IO", "console", "terminal", "prompt", "interact", "output", "verbos",
                  "input"),
    ],
    "components_acceptable": ["src", "src/Composer", CO + "*", CO + "*/*", "bin", "bin/*", "doc",
                              "doc/*", "res", "tests", "tests/**", "phpstan"],
    "short": {name: CO + name for name in (
        "Command", "Console", "DependencyResolver", "Repository", "Package", "Downloader",
        "Installer", "Autoload", "Plugin", "EventDispatcher", "Util", "IO")},
    "edges": r"""
        Command -> Repository : ^use Composer\\Repository\\
        Command -> Package : ^use Composer\\Package\\
        Command -> Plugin : ^use Composer\\Plugin\\
        Command -> Console : ^use Composer\\Console\\
        Console -> IO : ^use Composer\\IO\\
        DependencyResolver -> Package : ^use Composer\\Package\\
        DependencyResolver -> Repository : ^use Composer\\Repository\\
        Repository -> Package : ^use Composer\\Package\\
        Repository -> Util : ^use Composer\\Util\\
        Downloader -> Package : ^use Composer\\Package\\
        Downloader -> Util : ^use Composer\\Util\\
        Installer -> Downloader : ^use Composer\\Downloader\\
        Installer -> DependencyResolver : ^use Composer\\DependencyResolver\\
        Autoload -> Package : ^use Composer\\Package\\
        Plugin -> EventDispatcher : ^use Composer\\EventDispatcher\\
    """,
    "no_edges": r"""
        DependencyResolver -> Downloader : \bDownloader\\[A-Z]
        DependencyResolver -> Command : \bCommand\\[A-Z]
        Downloader -> Installer : \bInstaller\\[A-Z]
        Package -> Command : \bCommand\\[A-Z]
        IO -> Repository : \bRepository\\[A-Z]
        Autoload -> Downloader : \bDownloader\\[A-Z]
        Repository -> Command : \bCommand\\[A-Z]
        Util -> DependencyResolver : \bDependencyResolver\\[A-Z]
    """,
    "conventions": [
        ["psr 2", "psr2", "cs fixer"],
        ["phpstan"],
        ["7.2"],
        ["oldest branch", "bug fixes pick", "appropriate branch", "main branch",
         "cs fixes pull request", "coding style fix", "style only", "cs fixes"],
    ],
    "doubts": "Installer.php, Factory.php and Config.php are large single files beside the "
              "folders; they are core files, but no components. Json, Config, Script, Policy, "
              "Advisory and FilterList are neutral. Console names its commands through a "
              "relative namespace (use Composer\\Command), so Console -> Command is true, but in "
              "neither list. vendor/bin/phpunit does not exist there: only simple-phpunit "
              "counts.",
}

# ---------------------------------------------------------------------------------- vapor
VA = "Sources/Vapor/"
LABELS["vapor"] = {
    "kind": "Swift library, one package with a macro target",
    "entrypoints_required": [
        VA + "Application.swift",
        paths("Sources/VaporTesting/",
              "withApp.swift TestingApplication.swift TestingApplicationTester.swift"),
        "Sources/VaporMacros/MacroInterface.swift",
        "Sources/VaporMacrosPlugin/VaporMacros.swift",
    ],
    "entrypoints_acceptable": [
        "Sources/Development/*.swift", "Sources/VaporTesting/*.swift",
        VA + "Routing/RoutesBuilder.swift", VA + "Routing/Routes.swift",
        VA + "Server/Server.swift", VA + "Server/Application+Servers.swift",
        VA + "HTTPNewNew/*.swift", VA + "Responder/DefaultResponder.swift",
    ],
    "entrypoints_wrong": ["Tests/**", ".github/**"],
    "top_files_good": paths(VA, """
        Application.swift Authentication/Authentication.swift Authentication/Authenticator.swift
        Authentication/GuardMiddleware.swift Authentication/SessionAuthenticatable.swift
        Cache/Cache.swift Client/Client.swift Client/ClientRequest.swift
        Client/ClientResponse.swift Content/Content.swift Content/ContentCoders.swift
        Content/ContentConfiguration.swift Content/ContentContainer.swift
        Content/URLQueryContainer.swift Environment/Environment.swift Error/Abort.swift
        Error/AbortError.swift Error/DebuggableError.swift HTTP/Responder.swift
        HTTP/BodyStream.swift HTTP/EndpointCache.swift HTTP/Client/EventLoopHTTPClient.swift
        HTTP/Headers/HTTPCookies.swift HTTP/Headers/HTTPMediaType.swift
        HTTPNewNew/HTTPServerHandler.swift HTTPNewNew/NIOHTTPServerAdapter.swift
        Middleware/Middleware.swift Middleware/MiddlewareConfiguration.swift
        Middleware/Application+Middleware.swift Middleware/ErrorMiddleware.swift
        Middleware/FileMiddleware.swift Middleware/CORSMiddleware.swift Request/Request.swift
        Request/Request+Body.swift Responder/DefaultResponder.swift Response/Response.swift
        Response/Response+Body.swift Response/ResponseCodable.swift Routing/Routes.swift
        Routing/Route.swift Routing/RoutesBuilder.swift Routing/RoutesBuilder+Method.swift
        Routing/RoutesBuilder+Group.swift Routing/RoutesBuilder+Middleware.swift
        Routing/RouteCollection.swift Server/Server.swift Server/ServerConfiguration.swift
        Server/Application+Servers.swift Sessions/Session.swift Sessions/SessionData.swift
        Sessions/SessionDriver.swift Sessions/SessionsMiddleware.swift
        Sessions/Application+Sessions.swift URLEncodedForm/URLEncodedFormDecoder.swift
        URLEncodedForm/URLEncodedFormEncoder.swift Utilities/FileIO.swift
        Utilities/Storage.swift Utilities/URI.swift Utilities/DotEnv.swift
        Validation/Validatable.swift Validation/Validations.swift Validation/Validator.swift
        View/ViewRenderer.swift""") + paths("Sources/", """
        VaporTesting/TestingApplication.swift VaporTesting/TestingApplicationTester.swift
        VaporTesting/withApp.swift VaporMacros/MacroInterface.swift
        VaporMacrosPlugin/VaporMacros.swift VaporMacrosPlugin/ControllerMacro.swift
        VaporMacrosPlugin/HTTPMethods/HTTPMethodMacroUtilities.swift
        VaporMacrosPlugin/HTTPMethods/FreestandingRouteMacro.swift
        Development/entrypoint.swift Development/configure.swift Development/routes.swift"""),
    "top_files_neutral": ["Package.swift"],
    "top_files_core": paths(VA, """
        Application.swift Request/Request.swift Response/Response.swift
        Routing/RoutesBuilder+Method.swift Responder/DefaultResponder.swift
        Middleware/Middleware.swift HTTPNewNew/NIOHTTPServerAdapter.swift
        HTTPNewNew/HTTPServerHandler.swift Content/Content.swift
        Content/ContentConfiguration.swift Server/ServerConfiguration.swift
        Environment/Environment.swift""") + [
        paths(VA + "Routing/", "Routes.swift RoutesBuilder.swift"),
        paths(VA + "Error/", "Abort.swift AbortError.swift"),
    ],
    "evidence": "README, .github/contributing.md, AGENTS.md (a policy, not a guide), "
                "Package.swift (products, targets, traits), .swift-version, test workflow, "
                "Application.swift, the server adapter and the default responder, import lines; "
                "inside the one module Sources/Vapor, lines that name types of other folders",
    "build_commands": ["swift build", "swift build *"],
    "test_commands": ["swift test", "swift test *"],
    "purpose": {
        "groups": [["web", "http", "server side", "backend"], ["framework"], ["swift"]],
        "bad": ["discord", "awesome stuff", "take a look", "sponsors"],
        "example": "An HTTP web framework for Swift, the base of websites, APIs and services.",
    },
    "components": [
        component("Sources/Vapor Sources/Vapor/Application.swift", "framework", "core",
                  "application", "main library", "web"),
        component(VA + "Routing", "route", "routes", "path", "endpoint", "trie", "url", "group"),
        component(VA + "HTTP", "header", "cookie", "media type", "server configuration", "tls",
                  "compression", "http client", "body stream", "http types"),
        component(VA + "Middleware", "cors", "error", "static file", "file serving", "chain",
                  "intercept", "pipeline", "responder", "request processing", "metrics",
                  "incoming request", "outgoing response", "between the server"),
        component(VA + "Content", "encod", "decod", "json", "codable", "serializ", "serialis",
                  "body", "bodies"),
        component(VA + "Authentication", "login", "log in", "bearer", "basic", "user", "guard",
                  "credential", "authenticator", "password"),
        component(VA + "Sessions", "cookie", "state", "persist", "driver", "stored", "in memory",
                  "across requests", "associat"),
        component(VA + "Validation", "validator", "rule", "input", "check", "email", "constraint",
                  "request data", "incoming"),
        component("Sources/VaporTesting", "tests", "test helper", "test util", "test client",
                  "test app", "test support", "for testing", "testing helper", "testing util",
                  "testing support", "testing app", "testing vapor", "swift testing"),
        component("Sources/VaporMacros", "route", "routes", "controller", "declar", "annotation",
                  "attached", "macro interface", "public macro", "swift macro", "http method",
                  "macros for"),
        component("Sources/VaporMacrosPlugin", "compiler", "swiftsyntax", "swift syntax",
                  "implementation", "expan", "code generat", "implements"),
        component("Sources/Development", "example", "sample", "playground", "executable", "try",
                  "manual", "demo", "sandbox", "trial", "local"),
    ],
    "components_acceptable": ["Sources", VA + "*", VA + "**", "Sources/*/*", "Tests", "Tests/*"],
    "short": {name: VA + name for name in (
        "Routing", "HTTP", "Middleware", "Content", "Authentication", "Sessions", "Validation")}
    | {"Vapor": "Sources/Vapor"}
    | {name: "Sources/" + name for name in (
        "VaporTesting", "VaporMacros", "VaporMacrosPlugin", "Development")},
    "edges": r"""
        VaporTesting -> Vapor : import Vapor$
        VaporMacros -> Vapor : import Vapor$
        VaporMacros -> VaporMacrosPlugin : module: "VaporMacrosPlugin"
        Development -> Vapor : import Vapor$
        Development -> VaporMacros : import VaporMacros$
        Vapor -> Routing : \bRoutes\b
        Vapor -> Content : \bContentConfiguration\b
        Routing -> Middleware : \bany Middleware\b
        Middleware -> HTTP : \bany Responder\b
        Authentication -> Middleware : : (Async)?Middleware\b
        Authentication -> Sessions : \bextension Session\b
        Sessions -> HTTP : \bHTTPCookies\b
        Content -> HTTP : \bHTTPMediaType\b
        Validation -> Content : \bContentConfiguration\b
    """,
    "no_edges": r"""
        Vapor -> VaporTesting : import VaporTesting
        Vapor -> VaporMacros : import VaporMacros
        VaporTesting -> VaporMacros : import VaporMacros
        Vapor -> Development : import Development
        Validation -> Sessions : \bSession(s|Data|ID|Driver)?\b|\.session\b
        Content -> Authentication : \bAuthenticat|\.auth\b
        HTTP -> Sessions : \bSession(s|Data|ID|Driver)?\b|\.session\b
        Middleware -> Validation : \bValidat
    """,
    "conventions": [
        ["explicit self"],
        ["xcode style", "indentation", "indent"],
        ["semver", "semantic version"],
        ["swift 6", "6.2", "swift tools version", "tools version"],
    ],
    "doubts": "Sources/Vapor is one Swift module, so no import line joins its folders: 9 of the "
              "14 edges rest on lines that name a type of the other folder, and a tool that "
              "reads only import lines can reach 5 of 14. The tree is the unreleased version 5 "
              "(HTTPNewNew is the server in use; the WebSocket client is disabled). Development "
              "is the only executable, but no product: acceptable as an entrypoint. "
              "VaporMacrosPlugin names Vapor's types in the code that it generates, without an "
              "import: in neither edge list. Vapor has no facade file; Application.swift "
              "stands for it.",
}

# -------------------------------------------------------------------------------- phoenix
PH = "lib/phoenix/"
LABELS["phoenix"] = {
    "kind": "Elixir web framework with generators, an installer and a JavaScript client",
    "entrypoints_required": [
        "lib/phoenix.ex", "assets/js/phoenix/index.js",
        ["installer/lib/mix/tasks/phx.new.ex", "installer/lib/phx_new/generator.ex"],
    ],
    "entrypoints_acceptable": [
        "lib/mix/tasks/*.ex", "lib/mix/tasks/phx.gen.auth/*.ex", "lib/mix/phoenix.ex",
        "installer/lib/mix/tasks/*.ex", "installer/lib/phx_new/generator.ex",
        PH + "endpoint.ex", PH + "router.ex", PH + "controller.ex", PH + "channel.ex",
        PH + "socket.ex", PH + "presence.ex", PH + "verified_routes.ex", PH + "token.ex",
        PH + "endpoint/supervisor.ex", PH + "code_reloader/server.ex",
        "assets/js/phoenix/socket.js",
    ],
    "entrypoints_wrong": [
        "test/**", "integration_test/**", "guides/**", "installer/templates/**",
        "installer/test/**", "installer/*.exs", "priv/**", "assets/test/**", "*.config.*",
        "config/**", "usage-rules/**",
    ],
    "top_files_good": ["lib/phoenix.ex", "lib/mix/phoenix.ex"] + paths(PH, """
        endpoint.ex endpoint/supervisor.ex endpoint/render_errors.ex endpoint/cowboy2_adapter.ex
        router.ex router/route.ex router/scope.ex router/resource.ex router/helpers.ex
        router/console_formatter.ex controller.ex controller/pipeline.ex channel.ex
        channel/server.ex socket.ex socket/transport.ex socket/message.ex
        socket/pool_supervisor.ex socket/serializers/v2_json_serializer.ex
        transports/websocket.ex transports/long_poll.ex transports/long_poll_server.ex
        presence.ex code_reloader.ex code_reloader/server.ex verified_routes.ex token.ex
        logger.ex config.ex digester.ex param.ex naming.ex test/conn_test.ex
        test/channel_test.ex""") + paths("lib/mix/", """
        phoenix/schema.ex phoenix/context.ex phoenix/scope.ex tasks/phx.server.ex
        tasks/phx.routes.ex tasks/phx.gen.html.ex tasks/phx.gen.live.ex tasks/phx.gen.context.ex
        tasks/phx.gen.schema.ex tasks/phx.gen.auth.ex tasks/phx.gen.json.ex
        tasks/phx.digest.ex""") + paths("assets/js/phoenix/", """
        index.js socket.js channel.js push.js longpoll.js presence.js serializer.js
        constants.js""") + paths("installer/lib/", """
        mix/tasks/phx.new.ex phx_new/generator.ex phx_new/single.ex phx_new/project.ex
        phx_new/umbrella.ex""") + paths("guides/", """
        introduction/overview.md request_lifecycle.md directory_structure.md plug.md routing.md
        controllers.md real_time/channels.md"""),
    "top_files_neutral": ["mix.exs", "mix.lock"],
    "top_files_core": ["lib/phoenix.ex"] + paths(PH, """
        endpoint.ex endpoint/supervisor.ex router.ex controller.ex channel.ex channel/server.ex
        socket.ex socket/transport.ex presence.ex verified_routes.ex""") + [
        paths(PH + "router/", "route.ex scope.ex"),
        "assets/js/phoenix/socket.js",
        paths("installer/lib/", "mix/tasks/phx.new.ex phx_new/generator.ex"),
    ],
    "evidence": "README, CONTRIBUTING, RELEASE, guides/introduction/overview.md and the list of "
                "guides in mix.exs, mix.exs (application module, aliases, module groups), "
                "package.json, config/config.exs (esbuild inputs), workflows, installer/README, "
                "alias, import and use lines and qualified module names in code",
    "build_commands": [
        "mix compile*", "mix deps.get && mix compile*", "mix do deps.get*compile*",
        "mix assets.build*", "cd installer && *mix *compile*",
        "cd installer && *mix *archive.build*",
    ],
    "test_commands": [
        "mix test", "mix test *", "npm test", "npm test *", "npm run test*", "npm ci && npm test",
        "cd installer && mix test*", "cd integration_test && mix test*",
        "./integration_test/test.sh*", "integration_test/test.sh*",
    ],
    "purpose": {
        "groups": [["web"], ["framework"], ["elixir"]],
        "bad": ["getting started", "dockyard", "chris mccord", "see the official site"],
        "example": "A web framework for Elixir with routing, controllers and real-time channels.",
    },
    "components": [
        component(PH + "endpoint.ex " + PH + "endpoint", "request", "entry", "supervis", "plug",
                  "boundary", "http", "starts", "web server"),
        component(PH + "router.ex " + PH + "router", "routes", "routing", "dispatch", "url",
                  "path", "pipeline", "verb", "match"),
        component(PH + "controller.ex " + PH + "controller", "render", "response", "action",
                  "redirect", "view", "flash", "format", "pluggable"),
        component(PH + "channel.ex " + PH + "channel", "real time", "realtime", "topic",
                  "message", "bidirectional", "pubsub", "broadcast"),
        component(PH + "socket.ex " + PH + "socket", "transport", "connection", "multiplex",
                  "serializ", "serialis", "channels", "websocket"),
        component(PH + "transports", "websocket", "long poll", "longpoll"),
        component(PH + "presence.ex", "who is", "online", "track", "user", "replicat", "crdt",
                  "joins"),
        component(PH + "code_reloader.ex " + PH + "code_reloader", "recompil", "development",
                  "changed", "reloads", "hot", "on change",
                  "code reloading", "automatic"),
        component(PH + "verified_routes.ex", "sigil", "compile time", "path", "url", "checked"),
        component("lib/mix lib/mix/tasks", "generator", "task", "phx.gen", "scaffold", "command",
                  "phx.routes"),
        component("installer installer/lib", "phx.new", "new project", "new application",
                  "new app", "generat", "scaffold", "phx new", "project template"),
        component("assets/js/phoenix assets/js assets", "javascript", "client", "browser",
                  "websocket"),
    ],
    "components_acceptable": [
        "lib", "lib/phoenix", PH + "*", PH + "*/*", "lib/mix/*", "lib/mix/**", "lib/phoenix.ex",
        "installer/*", "installer/**", "priv", "priv/*", "priv/templates/*", "guides",
        "guides/*", "test", "test/*", "integration_test", "assets/*", "assets/js/phoenix/*.js",
        "config", "usage-rules",
    ],
    "short": {name: PH + name for name in ("transports",)}
    | {name: PH + name + ".ex" for name in (
        "endpoint", "router", "controller", "channel", "socket", "presence", "code_reloader",
        "verified_routes")}
    | {"js": "assets/js/phoenix"},
    "edges": r"""
        endpoint -> transports : \bPhoenix\.Transports\.
        endpoint -> socket : \bPhoenix\.Socket\.
        endpoint -> channel : \bPhoenix\.Channel\.
        endpoint -> code_reloader : \bPhoenix\.CodeReloader\.
        endpoint -> controller : alias Phoenix\.Controller
        router -> controller : import Phoenix\.Controller
        router -> verified_routes : \bPhoenix\.VerifiedRoutes\.
        controller -> verified_routes : \bPhoenix\.VerifiedRoutes\.
        channel -> socket : alias Phoenix\.Socket
        socket -> channel : \bPhoenix\.Channel\.Server\.
        transports -> socket : \bPhoenix\.Socket\b|\bSocket\.Transport\b
        presence -> socket : %Phoenix\.Socket
        presence -> channel : \bPhoenix\.Channel\.Server
        lib/mix -> router : \bPhoenix\.Router\.
    """,
    "no_edges": r"""
        router -> channel : \bPhoenix\.Channel\b
        channel -> controller : \bPhoenix\.Controller\b
        controller -> channel : \bPhoenix\.Channel\b
        presence -> router : \bPhoenix\.Router\b
        transports -> router : \bPhoenix\.Router\b
        code_reloader -> channel : \bPhoenix\.Channel\b
        installer -> lib/mix : \bMix\.Phoenix\b|\bMix\.Tasks\.Phx\.(Gen|Routes|Server|Digest)
        js -> installer : installer
    """,
    "conventions": [
        ["rebase", "topic branch"],
        ["first paragraph", "short summary", "80 characters"],
        ["1.15"],
        ["warnings as errors", "mix format", ".formatter", "formatter.exs", "eslint"],
    ],
    "doubts": "A component is a module file with the folder beside it (endpoint.ex and endpoint/), "
              "so a tool that stops at lib/phoenix (neutral) gets little recall. The README says "
              "what Phoenix is only by its slogan; the guides and the manifests say it. "
              "verified_routes calls the router through a variable and names it in documentation "
              "only: in neither edge list. Modules that generators only write into templates "
              "(presence, controller) are no dependencies of lib/mix, but not listed as false "
              "either. `mix deps.get` alone is no build. priv/static holds the built client.",
}
