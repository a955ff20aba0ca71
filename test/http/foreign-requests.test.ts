import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parsePublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { createResource } from '../support/populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, type HolderKey, keyProof, makeJwt, newKey, now, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { startUpstreamProvider, type UpstreamProvider } from '../support/upstream-provider.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

const PLACEHOLDER = /\{([a-z0-9_]+)\}/g;

/** Replaces placeholders; a text that consists of one placeholder becomes its value. */
function fill(template: unknown, values: Readonly<Record<string, unknown>>): unknown {
  const replacement = (name: string) => {
    if (!Object.hasOwn(values, name)) throw new Error(`the fixture has an unknown placeholder {${name}}`);
    return values[name];
  };
  if (typeof template === 'string') {
    const [, only] = /^\{([a-z0-9_]+)\}$/.exec(template) ?? [];
    if (only !== undefined) return replacement(only);
    return template.replaceAll(PLACEHOLDER, (_, name: string) => String(replacement(name)));
  }
  if (Array.isArray(template)) return template.map((entry) => fill(entry, values));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fill(value, values)]));
}

function fixture(name: string) {
  return JSON.parse(readFileSync(new URL(`../fixtures/foreign-requests/${name}.json`, import.meta.url), 'utf8'));
}

function thumbprintOf({ jwk }: HolderKey): string {
  const key = parsePublicJwk(jwk);
  if (key === undefined) throw new Error('not a public key');
  return thumbprint(key);
}

describe('requests in the form of other products', () => {
  let service: TestService;
  let provider: WalletProvider;
  let keycloak: UpstreamProvider;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    provider = await WalletProvider.start();
    keycloak = await startUpstreamProvider({ accounts: { alice: {} }, resourceScopes: ['card'], algorithm: 'ES256' });
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    for (const id of ['card', 'pass', 'attested']) {
      await createResource(service, token, '/issuer/credentials', {
        ...{ id, config, vct: `urn:${id}:1`, claims: { name: 'Ada' } },
        ...(id === 'attested' && { keyAttestationsRequired: { key_storage: ['iso_18045_high'] } }),
      });
    }
    wallet = new RawWallet(service, 'acme');
    await configure();
  });
  after(async () => {
    await service.close();
    await provider.close();
    await keycloak.close();
  });

  const configure = async (more: object = {}) => {
    const json = {
      display: [{ name: 'Acme', locale: 'en' }],
      batchSize: 10,
      ...provider.configuration(),
      walletAttestationRequired: false,
      ...more,
    };
    const answer = await service.call('POST', '/issuer/config', { token, json });
    expect(answer.status, answer.text).to.equal(201);
  };
  const offer = async (id: string, flow = 'pre_authorized_code') => {
    const body = { response_type: 'uri', flow, credentialConfigurationIds: [id] };
    return (await createResource(service, token, '/issuer/offer', body)).uri as string;
  };
  const boundKeys = (answer: Answer): unknown[] => {
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.credentials.map(({ credential }: { credential: string }) => {
      const payload = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      return payload.cnf.jwk;
    });
  };

  it('get a credential per key for the batch of the conformance suite', async () => {
    const { keys: count, proof, keyAttestation, body } = fixture('conformance-suite-batch');
    const keys: HolderKey[] = Array.from({ length: count }, () => newKey());
    const values = {
      client_id: CLIENT_ID,
      issuer: wallet.issuer,
      now: now(),
      expires: now() + 300,
      nonce: await wallet.nonce(),
      configuration: 'attested',
    };
    const jwks = keys.map(({ jwk }) => jwk);
    const attestation = fill(keyAttestation, { ...values, jwks, x5c: [provider.signer.certificate] }) as {
      header: object;
      payload: object;
    };
    const key_attestation = makeJwt(provider.signer, attestation.header, attestation.payload);
    const proofs = keys.map((key) => {
      const filled = fill(proof, { ...values, jwk: key.jwk, key_attestation }) as { header: object; payload: object };
      return makeJwt(key, filled.header, filled.payload);
    });
    const accessToken = await wallet.accessToken(await offer('attested'), { client_id: CLIENT_ID });
    const request = fill(body, { ...values, proofs });
    const answer = await wallet.request(accessToken, 'attested', { body: request });
    expect(boundKeys(answer)).to.deep.equal(jwks);
  });

  it('from Yivi are accepted as a pushed request and get only the scope of the offer', async () => {
    const { grants } = (await wallet.offer(await offer('card', 'authorization_code'))) as {
      grants: { authorization_code: { issuer_state: string } };
    };
    const form = fill(fixture('yivi-pushed-request'), {
      ...AUTHORIZATION_REQUEST,
      configuration: 'card',
      scopes_supported: 'attested card pass',
      issuer_state: grants.authorization_code.issuer_state,
    }) as Record<string, string>;
    const pushed = await service.call('POST', '/acme/par', { form });
    expect(pushed.status, pushed.text).to.equal(201);
    const code = await wallet.authorize(pushed.body.request_uri);
    const { status, body } = await wallet.redeemCode(code);
    expect(status).to.equal(200);
    expect(body.scope).to.equal('card');
    const [detail, ...others] = body.authorization_details;
    expect(others).to.deep.equal([]);
    expect(detail.credential_configuration_id).to.equal('card');
    const [credential_identifier] = detail.credential_identifiers;
    const key = newKey();
    const jwt = keyProof(key, wallet.issuer, await wallet.nonce());
    const issued = await wallet.request(body.access_token, 'card', { body: { credential_identifier, proofs: { jwt: [jwt] } } });
    expect(boundKeys(issued)).to.deep.equal([key.jwk]);
  });

  it('with a DPoP-bound access token of Keycloak get a credential only for the key in its jkt', async () => {
    await configure({ authServers: [keycloak.issuer] });
    const claims = fill(fixture('keycloak-access-token'), { jkt: thumbprintOf(wallet.dpopKey) }) as object;
    const text = await keycloak.accessTokenFor(wallet.issuer, { scope: 'card', claims: { ...claims } });
    const key = newKey();
    expect(boundKeys(await wallet.request(text, 'card', { key }))).to.deep.equal([key.jwk]);
    const thief = new RawWallet(service, 'acme');
    const stolen = await thief.request(text, 'card');
    expect([stolen.status, stolen.body.error], stolen.text).to.deep.equal([401, 'invalid_token']);
    const bearer = await wallet.request(text, 'card', { headers: { Authorization: `Bearer ${text}` } });
    expect(bearer.status).to.equal(401);
  });
});
