//! The logins to MCP servers: tokens in a file that only its owner can read. This module alone
//! reads and writes it.

use std::{
    collections::BTreeMap,
    fmt, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cairn_pairing::write_private;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};

/// Rights of other users, none of which the file may have.
const OTHERS: u32 = 0o077;

/// The file with the logins.
pub struct Logins {
    path: PathBuf,
    /// Locked while the file is read and written.
    file: Mutex<()>,
    /// Locked while a token is refreshed, because a refresh token can be used once.
    refreshing: Arc<tokio::sync::Mutex<()>>,
}

/// A login as stored: it is valid for this address only, so that a changed configuration does not
/// send it elsewhere.
#[derive(Clone, Serialize, Deserialize)]
struct StoredLogin {
    url: String,
    credentials: StoredCredentials,
}

/// Logins by the name of the server.
type Stored = BTreeMap<String, StoredLogin>;

impl Logins {
    pub fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, file: Mutex::default(), refreshing: Arc::default() })
    }

    /// Returns true if a login to the server at `url` is stored and can be read.
    pub fn has(&self, server: &str, url: &str) -> bool {
        self.load(server, url).is_ok_and(|login| login.is_some())
    }

    /// Deletes the login to a server; returns true if there was one.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn remove(&self, server: &str) -> io::Result<bool> {
        self.change(|logins| logins.remove(server).is_some())
    }

    /// Returns the store of one server's login.
    pub fn of_server(self: &Arc<Self>, server: &str, url: &str) -> LoginStore {
        LoginStore { logins: Arc::clone(self), server: server.to_owned(), url: url.to_owned() }
    }

    fn load(&self, server: &str, url: &str) -> io::Result<Option<StoredCredentials>> {
        let _locked = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut logins = self.read()?;
        let login = logins.remove(server).filter(|login| login.url == url);
        Ok(login.map(|login| login.credentials))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Stored) -> T) -> io::Result<T> {
        let _locked = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut logins = self.read()?;
        let outcome = change(&mut logins);
        write_private(&self.path, &serde_json::to_vec_pretty(&logins)?)?;
        Ok(outcome)
    }

    /// Reads the file, unless others have a right to it: they may know the tokens already.
    fn read(&self) -> io::Result<Stored> {
        require_private(&self.path)?;
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::new()),
            Err(error) => return Err(error),
        };
        // The parser's own text could contain a token.
        let at = |e: serde_json::Error| {
            format!("{} is invalid in line {}", self.path.display(), e.line())
        };
        serde_json::from_slice(&bytes).map_err(|e| io::Error::other(at(e)))
    }
}

fn require_private(path: &Path) -> io::Result<()> {
    let mode = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.permissions().mode(),
        Ok(_) => return Err(io::Error::other(format!("{} is not a file", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} can be accessed by other users (mode {:o}): log in again after 'chmod 600' of it",
        path.display(),
        mode & 0o777
    )))
}

/// The stored login to one server.
#[derive(Clone)]
pub struct LoginStore {
    logins: Arc<Logins>,
    server: String,
    url: String,
}

impl fmt::Debug for LoginStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginStore").field("server", &self.server).finish_non_exhaustive()
    }
}

impl LoginStore {
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, AuthError> {
        let this = self.clone();
        let failed = |error: String| AuthError::CredentialStoreError(error);
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        done.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))
    }
}

#[async_trait::async_trait]
impl CredentialStore for LoginStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.blocking(|store| store.logins.load(&store.server, &store.url)).await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.blocking(|store| {
            let login = StoredLogin { url: store.url.clone(), credentials };
            store.logins.change(|logins| drop(logins.insert(store.server.clone(), login)))
        })
        .await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.blocking(|store| store.logins.remove(&store.server).map(drop)).await
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = Arc::clone(&self.logins.refreshing).lock_owned().await;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(token: &str) -> StoredCredentials {
        let response = serde_json::json!({
            "access_token": token, "token_type": "bearer", "refresh_token": "r", "expires_in": 60,
        });
        StoredCredentials::new(
            "client".into(),
            Some(serde_json::from_value(response).unwrap()),
            vec![],
            Some(1),
        )
    }

    #[tokio::test]
    async fn login_is_private_and_bound_to_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp-logins.json");
        let logins = Logins::new(path.clone());
        let store = logins.of_server("a", "https://a.example/mcp");
        assert!(store.load().await.unwrap().is_none());
        store.save(credentials("secret")).await.unwrap();
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        assert!(logins.has("a", "https://a.example/mcp"));
        // Another server under the same name, or another name, does not get it.
        assert!(
            !logins.has("a", "https://b.example/mcp") && !logins.has("b", "https://a.example/mcp")
        );
        assert!(!format!("{store:?}").contains("secret"));
        // Control: the file is used again as soon as it is private.
        for (rights, usable) in [(0o640, false), (0o604, false), (0o600, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(rights)).unwrap();
            let loaded = store.load().await;
            assert_eq!(loaded.is_ok(), usable, "{rights:o}");
            if let Err(error) = loaded {
                let text = error.to_string();
                assert!(text.contains("chmod 600") && !text.contains("secret"), "{text}");
                assert!(store.save(credentials("other")).await.is_err());
            }
        }
        assert!(logins.remove("a").unwrap() && !logins.remove("a").unwrap());
        assert!(store.load().await.unwrap().is_none());
        std::fs::write(&path, r#"{"a": "secret"}"#).unwrap();
        let text = store.load().await.unwrap_err().to_string();
        assert!(text.contains("line 1") && !text.contains("secret"), "{text}");
    }
}
