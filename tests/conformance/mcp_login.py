"""An MCP server with a login, made with the official MCP package: its own authorization server.

Usage: mcp_login.py PORT [ISSUER]
By streamable HTTP at http://127.0.0.1:PORT/mcp. A browser that opens the address of an authorization is logged in
at once. ISSUER is named in the metadata in place of the server itself. At /control?forget=1 every access token is
forgotten, at /control?revoke=1 every refresh token too; the answer counts the refreshes.
"""

import secrets
import sys
import time

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from starlette.responses import JSONResponse

port = int(sys.argv[1])
base = f"http://127.0.0.1:{port}"
issuer = sys.argv[2] if len(sys.argv) > 2 else base


class Provider:
    """Stores everything in memory and requests no password."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}
        self.refreshed = 0

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        if client.client_name == "refuse":
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    def issue(self, client, scopes, resource):
        access, refresh = "secret-access-" + secrets.token_hex(8), "secret-refresh-" + secrets.token_hex(8)
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=int(time.time()) + 3600, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, expires_in=3600, refresh_token=refresh, scope=" ".join(scopes))

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        # A refresh token is used once.
        del self.refresh[refresh_token.token]
        self.refreshed += 1
        return self.issue(client, scopes, f"{base}/mcp")

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)


provider = Provider()
server = MCPServer(
    "tracker",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=issuer,
        resource_server_url=f"{base}/mcp",
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["tickets"], default_scopes=["tickets"]
        ),
        required_scopes=["tickets"],
        validate_token_resource=True,
    ),
)


@server.tool()
def tickets() -> str:
    """Lists the tickets of the user who logged in."""
    return "one ticket"


@server.custom_route("/control", methods=["GET"])
async def control(request):
    if "forget" in request.query_params:
        provider.access.clear()
    if "revoke" in request.query_params:
        provider.access.clear()
        provider.refresh.clear()
    return JSONResponse({"refreshed": provider.refreshed, "clients": len(provider.clients)})


server.run(transport="streamable-http", host="127.0.0.1", port=port)
