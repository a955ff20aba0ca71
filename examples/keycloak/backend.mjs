/** A backend that has its access tokens from Keycloak: it makes its tenant as the operator, and an offer as itself. */
import { VidimusClient, VidimusError } from 'vidimus/client';

const { OIDC, VIDIMUS_URL = 'http://localhost:3000', OPERATOR_SECRET, ACME_SECRET } = process.env;
const EARLY_MS = 30_000;

async function json(address, init = {}) {
  const answer = await fetch(address, init);
  if (!answer.ok) throw new Error(`${address} answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/** Client credentials at Keycloak; kept until shortly before the token ends. */
function tokensOf(clientId, clientSecret) {
  let held = { token: '', until: 0 };
  return async () => {
    if (Date.now() < held.until) return held.token;
    /** @type {any} */
    const { token_endpoint: endpoint } = await json(`${OIDC}/.well-known/openid-configuration`);
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const basic = btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`);
    const headers = { Authorization: `Basic ${basic}` };
    /** @type {any} */
    const { access_token: token, expires_in: seconds } = await json(endpoint, { method: 'POST', body, headers });
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
  body: { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['badge'] },
});
console.log(uri);
