import { hash, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { parseAlgorithm, parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { PRESENTATION_ALGORITHMS } from '../../../domain/verification/request-object.ts';
import type { PostedVerification } from '../../../domain/verification/verification-request.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { withoutIssuers } from '../../support/failures.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME, formOf, PUBLIC_URL, present, query, World } from './kit.ts';

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** A key chain whose certificate ends in ten minutes. */
async function endingAccessKey(world: World) {
  const made = await world.keyChain(ACME, 'ending', ['access']);
  const notAfter = new Date(world.clock.time + 600_000);
  const chain = { ...made, active: { ...made.active, notAfter } };
  await world.store.forTenant(ACME, ({ keyChains }) => keyChains.add(chain), { by: 'system' });
  return { chain };
}

describe('presentation', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.make();
  });

  for (const responseMode of ['direct_post', 'direct_post.jwt']) {
    it(`is verified and sent to the backend once, with ${responseMode}`, async () => {
      await world.configure({ responseMode });
      const woken: string[] = [];
      world.eventBus.subscribe((wakeUp) => woken.push(wakeUp.type));
      const asked = await world.request();
      const form = await formOf(asked, { card: [present(world, asked)] });
      world.webhooks.beforeAnswer = async () => {
        const during = await world.session(asked.session.id);
        expect([during.status, during.outcome?.deliveries?.[0]?.result]).to.deep.equal(['fetched', 'pending']);
      };
      const { redirect_uri } = await world.receiveResponse.execute(ACME, asked.publicId, form);
      expect(redirect_uri).to.match(/\/acme\/presented\?response_code=/);

      const session = await world.session(asked.session.id);
      expect(session.status).to.equal('completed');
      expect(withoutIssuers(session.outcome?.credentials)).to.deep.equal([{ id: 'card', values: { name: 'Erika' } }]);
      expect(session.outcome?.deliveries?.[0]?.result).to.equal('delivered');
      expect(session.outcome?.report).to.have.length(11);
      expect(world.webhooks.calls).to.have.length(1);
      expect(world.webhooks.calls[0]?.body).to.deep.equal({ session: session.id, credentials: session.outcome?.credentials });
      expect(woken, 'for each change of the status').to.deep.equal(['session', 'session']);
    });
  }

  it('is requested with a request object for the wallet', async () => {
    await world.configure({ attached: [{ format: 'x', data: { a: 1 }, credential_ids: ['card'] }] });
    const asked = await world.request();
    const jws = parseCompactJws(asked.text);
    const [leaf = ''] = (jws?.header['x5c'] ?? []) as string[];
    const certificate = new X509Certificate(Buffer.from(leaf, 'base64'));
    expect(jws?.header).to.include({ typ: 'oauth-authz-req+jwt', alg: 'ES256' });
    expect(certificate.subject).to.not.equal(certificate.issuer);
    expect(asked.claims).to.deep.include({
      response_type: 'vp_token',
      response_mode: 'direct_post.jwt',
      client_id: `x509_hash:${hash('sha256', Buffer.from(leaf, 'base64'), 'base64url')}`,
      aud: 'https://self-issued.me/v2',
      response_uri: `${PUBLIC_URL}/acme/response/${asked.publicId}`,
      dcql_query: query({ id: 'card' }),
      verifier_info: [{ format: 'x', data: { a: 1 }, credential_ids: ['card'] }],
      iat: world.seconds,
      exp: world.seconds + 300,
    });
    const metadata = asked.claims['client_metadata'] as { jwks: { keys: Record<string, string>[] } };
    expect(Object.keys(metadata)).to.have.members(['vp_formats_supported', 'jwks', 'encrypted_response_enc_values_supported']);
    expect(metadata.jwks.keys[0]).to.include({ alg: 'ECDH-ES', use: 'enc' }).and.not.have.property('d');
    const ids = [asked.session.id, asked.publicId, asked.request.nonce, asked.request.state];
    expect(new Set(ids).size).to.equal(4);
  });

  it('creates a key for each request', async () => {
    await world.configure();
    const [one, other] = [await world.request(), await world.request()];
    expect(one.request.encryption?.publicJwk['x']).to.not.equal(other.request.encryption?.publicJwk['x']);
  });

  it('serves the same bytes again, but not after the response', async () => {
    await world.configure();
    const asked = await world.request();
    expect(await world.serveRequestObject.execute(ACME, asked.publicId)).to.equal(asked.text);
    const form = await formOf(asked, { card: [present(world, asked)] });
    await world.receiveResponse.execute(ACME, asked.publicId, form);
    const failure = await failureOf(world.serveRequestObject.execute(ACME, asked.publicId));
    expect(failure.code).to.equal('gone');
  });

  it('signs a copy that carries the nonce of the wallet', async () => {
    await world.configure();
    const asked = await world.request();
    const text = await world.serveRequestObject.execute(ACME, asked.publicId, { wallet_nonce: 'w-1' });
    expect(parseCompactJws(text)?.payload).to.deep.equal({ ...asked.claims, wallet_nonce: 'w-1' });
  });

  it('returns any nonce of the wallet unchanged', async () => {
    await world.configure();
    const asked = await world.request();
    for (const wallet_nonce of ['q+/8=', 'mit Leerzeichen "und" Ümläuten', 'a'.repeat(512)]) {
      const text = await world.serveRequestObject.execute(ACME, asked.publicId, { wallet_nonce });
      expect(parseCompactJws(text)?.payload['wallet_nonce']).to.equal(wallet_nonce);
    }
  });

  it('publishes fully specified names of algorithms, and accepts EdDSA as well', async () => {
    await world.configure();
    const { claims } = await world.request();
    const { 'dc+sd-jwt': formats } = (claims['client_metadata'] as JsonObject)['vp_formats_supported'] as JsonObject;
    const names = ['ES256', 'ES384', 'ES512', 'Ed25519'];
    expect(formats).to.deep.equal({ 'sd-jwt_alg_values': names, 'kb-jwt_alg_values': names });
    expect(parseAlgorithm({ alg: 'EdDSA' }, PRESENTATION_ALGORITHMS).fault).to.equal(undefined);
  });

  const badParameters = {
    'no nonce at all': { wallet_nonce: '' },
    'a nonce that is too long': { wallet_nonce: 'a'.repeat(513) },
    'a nonce with a control character': { wallet_nonce: 'a\u0001' },
    'metadata that is not JSON': { wallet_metadata: '{' },
    'no common format': { wallet_metadata: '{"vp_formats_supported":{"mso_mdoc":{}}}' },
    'no common prefix': { wallet_metadata: '{"client_id_prefixes_supported":["redirect_uri"]}' },
  };
  for (const [what, parameters] of Object.entries(badParameters)) {
    it(`rejects a fetch with ${what}`, async () => {
      await world.configure();
      const { publicId } = await world.request();
      const failure = await failureOf(world.serveRequestObject.execute(ACME, publicId, parameters));
      expect(failure.code).to.equal('invalid_request');
    });
  }

  it('ignores unknown parameters and properties', async () => {
    await world.configure();
    const { publicId } = await world.request();
    const parameters = { wallet_nonce: 'w-1', wallet_metadata: '{"future":{"a":[1]}}', else: 'x' };
    const text = await world.serveRequestObject.execute(ACME, publicId, parameters);
    expect(parseCompactJws(text)?.payload['wallet_nonce']).to.equal('w-1');
  });

  it('is not served if the access certificate has expired', async () => {
    await world.configure();
    const { chain: access } = await endingAccessKey(world);
    await world.configure({ accessKeyChainId: access.id, lifeTime: 3600 });
    const { publicId } = await world.request();
    world.clock.time = access.active.notAfter.getTime() - 1;
    await world.serveRequestObject.execute(ACME, publicId);
    world.clock.time += 1;
    for (const wallet of [{}, { wallet_nonce: 'n' }]) {
      const failure = await failureOf(world.serveRequestObject.execute(ACME, publicId, wallet));
      expect(failure.code).to.equal('gone');
    }
  });

  it('is neither fetched nor answered after its expiry, or at an address of another tenant', async () => {
    await world.configure();
    await world.addTenant('other' as typeof ACME);
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const elsewhere = 'other' as typeof ACME;
    expect((await failureOf(world.serveRequestObject.execute(elsewhere, asked.publicId))).code).to.equal('not_found');
    expect((await failureOf(world.receiveResponse.execute(elsewhere, asked.publicId, form))).code).to.equal('not_found');
    world.clock.time += 301_000;
    expect((await failureOf(world.serveRequestObject.execute(ACME, asked.publicId))).code).to.equal('gone');
    expect((await failureOf(world.receiveResponse.execute(ACME, asked.publicId, form))).code).to.equal('gone');
  });

  it('redirects the browser with a code that is stored as a hash', async () => {
    await world.configure({ redirectUri: 'https://shop.example/done?s={sessionId}#top' });
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const { redirect_uri = '' } = await world.receiveResponse.execute(ACME, asked.publicId, form);
    const url = new URL(redirect_uri);
    const { outcome } = await world.session(asked.session.id);
    expect(url.searchParams.get('s')).to.equal(asked.session.id);
    expect(url.hash).to.equal('#top');
    expect(outcome?.responseCodeHash).to.equal(hash('sha256', url.searchParams.get('response_code') ?? '', 'base64url'));
    expect(outcome?.redirectUri).to.equal(`https://shop.example/done?s=${asked.session.id}#top`);
  });

  it('redirects to an address of the backend, if it is valid', async () => {
    await world.configure({ redirectUri: 'https://shop.example/done' });
    for (const [wanted, host] of [
      ['https://elsewhere.example/', 'elsewhere.example'],
      ['javascript:alert(1)', 'shop.example'],
    ] as const) {
      world.webhooks.answer = { redirectUri: wanted };
      const asked = await world.request();
      const form = await formOf(asked, { card: [present(world, asked)] });
      const reply = await world.receiveResponse.execute(ACME, asked.publicId, form);
      expect(new URL(reply.redirect_uri ?? '').host).to.equal(host);
    }
  });

  it('fails when the webhook rejects it, after one attempt', async () => {
    await world.configure();
    world.webhooks.answer = new WebhookError('bad_status', 'it said no', { status: 500 });
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const failure = await failureOf(world.receiveResponse.execute(ACME, asked.publicId, form));
    const { status, outcome } = await world.session(asked.session.id);
    expect([failure.code, status, outcome?.failure?.code]).to.deep.equal(['invalid_request', 'failed', 'webhook_failed']);
    expect(outcome?.deliveries?.[0]).to.include({ result: 'failed', detail: 'it said no' });
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is processed once for any number of callers', async () => {
    await world.configure();
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => world.receiveResponse.execute(ACME, asked.publicId, form)));
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    expect(world.webhooks.calls).to.have.length(1);
    expect((await world.session(asked.session.id)).status).to.equal('completed');
  });

  it('completes even if the wallet fetches the request concurrently', async () => {
    await world.configure();
    const offer = await world.createPresentationRequest.execute(cachedCaller(await world.caller()), {
      response_type: 'uri',
      requestId: 'card',
    });
    const session = await world.session(offer.session);
    const request = session.request as PostedVerification;
    const asked = { tenantId: ACME, session, publicId: session.publicId, request, claims: {}, text: '' };
    world.webhooks.beforeAnswer = async () => {
      await stepsOf(world.store, ACME).fetchSession(session.publicId, world.clock.now());
    };
    const form = await formOf(asked, { card: [present(world, asked)] });
    await world.receiveResponse.execute(ACME, asked.publicId, form);
    expect((await world.session(session.id)).status).to.equal('completed');
  });

  it('does not leave a session open after an internal error', async () => {
    await world.configure();
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    world.webhooks.answer = new Error('a bug') as WebhookError;
    let thrown: unknown;
    await world.receiveResponse.execute(ACME, asked.publicId, form).catch((error: unknown) => {
      thrown = error;
    });
    const { status, outcome } = await world.session(asked.session.id);
    expect(thrown).to.have.property('message', 'a bug');
    expect([status, outcome?.failure?.code]).to.deep.equal(['failed', 'internal_error']);
  });

  it('logs a session whose failure cannot be recorded', async () => {
    await world.configure();
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked)] });
    const bug = new Error('a bug');
    const lost = new Error('the database is gone');
    world.webhooks.beforeAnswer = async () => {
      world.store.commit = () => Promise.reject(lost);
    };
    world.webhooks.answer = bug as WebhookError;
    const thrown = await world.receiveResponse.execute(ACME, asked.publicId, form).catch((error: unknown) => error);
    expect(thrown, 'what came first').to.equal(bug);
    const [entry] = world.log.errors;
    expect([entry?.fields, entry?.cause]).to.deep.equal([{ sessionId: asked.session.id }, lost]);
  });

  it('without a redirect may also be requested across devices', async () => {
    await world.configure();
    const body = { response_type: 'uri', requestId: 'card' } as const;
    const offer = await world.createPresentationRequest.execute(cachedCaller(await world.caller()), body);
    // The webhook of the configuration may name an address for the redirect.
    const suffixOf = (one: string, other: string) => other.replace(one, '');
    expect(suffixOf(offer.uri, String(offer.crossDeviceUri))).to.match(/^\.[\w-]{22}%2Fcross-device$/);
    expect(offer.uri).to.match(/^openid4vp:\/\/\?client_id=x509_hash%3A[^&]+&request_uri=https%3A%2F%2F[^&]+$/);
    expect(offer.uri).to.not.include(offer.session);
    const redirected = await world.createPresentationRequest.execute(cachedCaller(await world.caller()), {
      ...body,
      redirectUri: 'https://shop.example/',
    });
    expect(suffixOf(redirected.uri, String(redirected.crossDeviceUri))).to.match(/^\.[\w-]{22}%2Fcross-device$/);
  });

  it('is not requested by a client that may not use the configuration', async () => {
    await world.configure();
    const caller = await world.caller(ACME, ['another']);
    const body = { response_type: 'uri', requestId: 'card' } as const;
    expect((await failureOf(world.createPresentationRequest.execute(cachedCaller(caller), body))).code).to.equal('forbidden');
  });

  it('never shows the API key of the webhook in the stored offer', async () => {
    await world.configure();
    const webhook = { url: 'https://s.example', auth: { type: 'apiKey', config: { headerName: 'k', value: 'v-secret' } } };
    const { request } = await world.request({ body: { webhook } });
    expect(JSON.stringify(request.offerRequest)).to.not.include('v-secret');
    expect(request.webhook).to.deep.equal(webhook);
  });
});
