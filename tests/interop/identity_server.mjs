// An identity server that nobody here wrote (oidc-provider), which logs everybody in as alice. It consents for her, or
// asks first. Arguments: the folder of the package, a port, where the dashboard of a host takes people back, and `asks`.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [home, port, callback, asks] = process.argv.slice(2);
const entry = createRequire(`${home}/package.json`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(entry));
const SCOPES = ["bridgehead", "bridgehead:read", "bridgehead:interop", "bridgehead:other", "bridgehead:metrics", "bridgehead:dashboard", "bridgehead:admin"];
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: callback ? [{ client_id: "dashboard", redirect_uris: [callback] }] : [],
  scopes: ["openid", "offline_access", ...SCOPES],
  claims: { openid: ["sub"] },
  findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/approve/${interaction.uid}` },
  cookies: { keys: ["for these checks only"] },
  clientDefaults: { token_endpoint_auth_method: "none" },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: SCOPES.join(" "),
        audience: resource,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/approve/")) return next();
  const { prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
  let result = { login: { accountId: "alice" } };
  if (prompt.name === "consent" && asks && !ctx.query.answer) {
    ctx.body = `<!doctype html><title>Consent</title><p>${params.scope}</p><a href="?answer=yes">Agree</a> <a href="?answer=no">Deny</a>`;
    return;
  }
  if (ctx.query.answer === "no") {
    result = { error: "access_denied", error_description: "alice said no" };
  } else if (prompt.name === "consent") {
    const before = grantId && (await provider.Grant.find(grantId)); // what she agreed to earlier still holds
    const grant = before || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(" "));
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
      grant.addResourceScope(resource, scopes.join(" "));
    }
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
});

provider.listen(Number(port), "127.0.0.1");
