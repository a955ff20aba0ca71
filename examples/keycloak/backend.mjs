/** A backend that has its access tokens from Keycloak: it makes its tenant as the operator, and an offer as itself. */
import { VidimusClient, VidimusError } from 'vidimus/client';

const { OIDC, VIDIMUS_URL = 'http://localhost:3000', OPERATOR_SECRET, ACME_SECRET } = process.env;
const EARLY_MS = 30_000;

/** Client credentials at Keycloak; kept until shortly before the token ends. */
function tokensOf(clientId, clientSecret) {
  let held = { token: '', until: 0 };
  return async () => {
    if (Date.now() < held.until) return held.token;
    const { token_endpoint: endpoint } = await (
      await fetch(`${OIDC}/.well-known/openid-configuration`)
    ).json();
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const basic = btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`);
    const answer = await fetch(endpoint, {
      method: 'POST',
      body,
      headers: { Authorization: `Basic ${basic}` },
    });
    if (!answer.ok) throw new Error(`${clientId} gets no token: ${answer.status} ${await answer.text()}`);
    const { access_token: token, expires_in: seconds } = await answer.json();
    held = { token, until: Date.now() + seconds * 1000 - EARLY_MS };
    return token;
  };
}

const clientOf = (id, secret) => new VidimusClient({ url: VIDIMUS_URL, accessToken: tokensOf(id, secret) });

const operator = clientOf('operator', OPERATOR_SECRET);
try {
  await operator.post('/tenant', { body: { id: 'acme', name: 'Acme' } });
} catch (error) {
  if (!(error instanceof VidimusError) || error.code !== 'conflict') throw error;
}

const acme = clientOf('acme-backend', ACME_SECRET);
await acme.post('/issuer/credentials', {
  body: {
    id: 'badge',
    config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
    vct: 'urn:acme:badge:1',
    claims: { name: 'Ada' },
  },
});
const { uri } = await acme.post('/issuer/offer', {
  body: {
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['badge'],
  },
});
console.log(uri);
