import { randomUUID } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { openConfirmation } from '../../support/chained-artefacts.ts';
import { createResource, credentialBody, offerBody, presentationBody } from '../../support/populated.ts';
import { fetchRequest, makeResponse } from '../../support/present.ts';
import { callInParallel, countOutcomes, prepareSessions, type RaceContext, type RaceSuite } from '../../support/raced-services.ts';
import { newKey, RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';

const ISSUANCE_CALLERS = 30;

export const issuances: RaceSuite = [
  'concurrent issuance by one session',
  (racing) => {
    const configureIssuance = async (id: string, changes: object) => {
      const { service, token } = racing();
      await createResource(service, token, '/issuer/credentials', { ...credentialBody(id, 'signing'), ...changes });
    };

    it('is limited for any number of simultaneous requests', async () => {
      const { service, token, wallet } = racing();
      await configureIssuance('few', { maxIssuances: 3 });
      await configureIssuance('other', {});
      const offerRequest = { ...offerBody('few'), credentialConfigurationIds: ['few', 'other'] };
      const { uri } = await createResource(service, token, '/issuer/offer', offerRequest);
      const accessToken = await wallet.accessToken(uri);
      // Credentials of another configuration do not count.
      for (let count = 0; count < 4; count++) expect((await wallet.request(accessToken, 'other')).status).to.equal(200);
      const answers = await callInParallel(ISSUANCE_CALLERS, () => wallet.request(accessToken, 'few'));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 3, '400 credential_request_denied': ISSUANCE_CALLERS - 3 });
      expect((await wallet.request(accessToken, 'other')).status).to.equal(200);
    });

    it('has one active set: all but the last set are revoked', async () => {
      const { service, token, wallet } = racing();
      await configureIssuance('single', { oneActiveSet: true });
      const { uri, session } = await createResource(service, token, '/issuer/offer', offerBody('single'));
      const accessToken = await wallet.accessToken(uri);
      const answers = await callInParallel(8, () => wallet.request(accessToken, 'single'));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 8 });
      const statuses = await Promise.all(answers.map(({ body }) => readStatus(body.credentials[0].credential as string)));
      expect(statuses.sort()).to.deep.equal([0, 1, 1, 1, 1, 1, 1, 1]);
      const entries = (await service.call('GET', `/audit-log?limit=100`, { token })).body as { target: string; actor: unknown }[];
      const revocationEntries = entries.filter(({ target }) => target === session);
      expect(revocationEntries, 'one entry for each').to.have.length(7);
    });

    async function readStatus(credential: string): Promise<number> {
      const { status } = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      const { idx, uri } = status.status_list;
      const { text } = await racing().service.call('GET', uri);
      const { status_list } = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
      const bytes = inflateSync(Buffer.from(status_list.lst, 'base64url'));
      const { bits } = status_list;
      return ((bytes[Math.floor((idx * bits) / 8)] ?? 0) >> ((idx * bits) % 8)) & (2 ** bits - 1);
    }
  },
];

const APPROVAL_CALLERS = 50;

export const approvals: RaceSuite = [
  'concurrent approval of an unauthenticated wallet',
  (racing) => {
    it('issues one code for 50 equal requests, and none in addition to a denial', async () => {
      const { service, token, wallet } = racing();
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'client' };
      const json = { display: [{ name: 'Acme', locale: 'en' }], chainedAs: { upstream } };
      expect((await service.call('POST', '/issuer/config', { token, json })).status).to.equal(201);
      for (const decisions of [['approve'], ['approve', 'deny']]) {
        const { confirmation, confirmationCookie } = await openConfirmation(service, wallet.tenant, 'pid');
        const answers = await callInParallel(APPROVAL_CALLERS, (index) =>
          service.call('POST', `/${wallet.tenant}/chained-as/confirm`, {
            form: { confirmation, decision: decisions[index % decisions.length] ?? '' },
            headers: { Cookie: confirmationCookie },
          }),
        );
        expect(countOutcomes(answers), answers[0]?.text).to.deep.equal({ 303: 1, 400: APPROVAL_CALLERS - 1 });
      }
    });
  },
];

const OFFER_CALLERS = 40;

export const repeatedOffers: RaceSuite = [
  'request that is repeated with one Idempotency-Key',
  (racing) => {
    const postWithKey = ({ service, token }: RaceContext, path: string, key: string, json: object) =>
      service.call('POST', path, { token, json, headers: { 'Idempotency-Key': key } });
    const sessions = async ({ service, token }: RaceContext) =>
      (await service.call('GET', '/session?limit=500', { token })).body.length as number;

    it('creates one offer', async () => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const [key, sessionsBefore] = [randomUUID(), await sessions(racing())];
        const answers = await callInParallel(OFFER_CALLERS, () => postWithKey(racing(), '/issuer/offer', key, offerBody('pid')));
        expect(countOutcomes(answers)).to.deep.equal({ 201: OFFER_CALLERS });
        expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
        expect(await sessions(racing())).to.equal(sessionsBefore + 1);
      }
    });

    it('creates one presentation request', async () => {
      const { service, token } = racing();
      const { webhook: _webhook, ...question } = presentationBody('repeated', 'signing');
      expect((await service.call('POST', '/verifier/config', { token, json: question })).status).to.equal(201);
      const [key, sessionsBefore] = [randomUUID(), await sessions(racing())];
      const json = { response_type: 'uri', requestId: 'repeated' };
      const answers = await callInParallel(OFFER_CALLERS, () => postWithKey(racing(), '/verifier/offer', key, json));
      expect(countOutcomes(answers)).to.deep.equal({ 201: OFFER_CALLERS });
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
      expect(await sessions(racing())).to.equal(sessionsBefore + 1);
    });

    it('accepts one of two bodies with the same key, and no other', async () => {
      const key = randomUUID();
      const bodies = [offerBody('pid'), { ...offerBody('pid'), expiresIn: 60 }];
      const answers = await callInParallel(OFFER_CALLERS, (index) => postWithKey(racing(), '/issuer/offer', key, bodies[index % 2] ?? {}));
      expect(countOutcomes(answers)).to.deep.equal({ 201: OFFER_CALLERS / 2, '409 conflict': OFFER_CALLERS / 2 });
    });
  },
];

const CANCELLATION_CALLERS = 24;
const ROUNDS = 4;

/** Half of the callers cancel, the other half calls `otherCall`, alternating. */
async function raceCancellation(racing: RaceContext, session: string, otherCall: (index: number) => Promise<Answer>) {
  const { service, token } = racing;
  const cancel = () => service.call('POST', `/session/${session}/cancel`, { token });
  const answers = await callInParallel(CANCELLATION_CALLERS, (index) => (index % 2 === 0 ? otherCall(index) : cancel()));
  const sessionResponse = await service.call('GET', `/session/${session}`, { token });
  return {
    others: countOutcomes(answers.filter((_, index) => index % 2 === 0)),
    cancels: countOutcomes(answers.filter((_, index) => index % 2 === 1)),
    session: sessionResponse.body,
  };
}

/** Expects that exactly one of both succeeded, as the session shows. */
function expectOneWinner(outcome: Awaited<ReturnType<typeof raceCancellation>>, lateError: RegExp): void {
  const { others, cancels, session } = outcome;
  const isDone = others['200'] === 1;
  expect(others['200'] ?? 0, JSON.stringify(outcome)).to.equal(isDone ? 1 : 0);
  expect(cancels['200'] ?? 0, JSON.stringify(outcome)).to.equal(isDone ? 0 : 1);
  expect(Object.keys(cancels).filter((name) => !/^(200|409 conflict)$/.test(name))).to.deep.equal([]);
  expect(Object.keys(others).filter((name) => name !== '200' && !lateError.test(name))).to.deep.equal([]);
  expect(session.status).to.equal(isDone ? 'completed' : 'failed');
  expect(session.failure?.code).to.equal(isDone ? undefined : 'cancelled');
}

export const cancellations: RaceSuite = [
  'concurrent cancellation',
  (racing) => {
    it('succeeds once with any concurrent requests', async () => {
      const { service, token } = racing();
      const { session } = await createResource(service, token, '/issuer/offer', offerBody('pid'));
      const answers = await callInParallel(CANCELLATION_CALLERS, () => service.call('POST', `/session/${session}/cancel`, { token }));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '409 conflict': CANCELLATION_CALLERS - 1 });
    });

    it('or the redemption of a code succeeds: no token is valid afterwards', async () => {
      const { service, token, wallet } = racing();
      for (let attempt = 0; attempt < ROUNDS; attempt++) {
        const { uri, session } = await createResource(service, token, '/issuer/offer', offerBody('pid'));
        const code = await wallet.code(uri);
        // The wallet may repeat the token request of one grant until the offer is cancelled.
        const { cancels, session: sessionResponse } = await raceCancellation(racing(), session, () => wallet.redeem(code));
        expect(cancels['200'], 'an offer without a credential can be cancelled').to.equal(1);
        expect([sessionResponse.status, sessionResponse.failure.code]).to.deep.equal(['failed', 'cancelled']);
        expect(countOutcomes([await wallet.redeem(code)])).to.deep.equal({ '400 invalid_grant': 1 });
      }
    });

    it('or a credential request succeeds, exactly one of both', async () => {
      const { wallet } = racing();
      for (let attempt = 0; attempt < ROUNDS; attempt++) {
        const [readySession] = await prepareSessions(racing(), 1);
        let hasRequested = false;
        const outcome = await raceCancellation(racing(), readySession?.session ?? '', async () => {
          const answer = await wallet.request(readySession?.accessToken ?? '', 'pid');
          // A token serves several requests, so the check is whether any of them preceded the cancellation.
          const isFirst = answer.status === 200 && !hasRequested;
          hasRequested ||= answer.status === 200;
          return isFirst || answer.status !== 200 ? answer : { ...answer, status: 429, body: {} };
        });
        expectOneWinner(outcome, /^(429|4\d\d (credential_request_denied|invalid_token|invalid_credential_request))$/);
      }
    });

    it('or a presentation response succeeds, exactly one of both', async () => {
      const { service, token, wallet } = racing();
      const holder = newKey();
      const [session] = await prepareSessions(racing(), 1);
      const credentialResponse = await wallet.request(session?.accessToken ?? '', 'pid', { key: holder });
      const credential = credentialResponse.body.credentials[0].credential as string;
      const { vct } = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      const { webhook: _webhook, ...question } = presentationBody('ended', 'signing');
      const credentials = [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: [vct] } }];
      await createResource(service, token, '/verifier/config', { ...question, dcql_query: { credentials } });
      for (let attempt = 0; attempt < ROUNDS; attempt++) {
        const json = { response_type: 'uri', requestId: 'ended' };
        const offer = await createResource(service, token, '/verifier/offer', json);
        const request = await fetchRequest(service, offer.uri);
        const forms = await callInParallel(CANCELLATION_CALLERS, () => makeResponse(request, credential, holder));
        const outcome = await raceCancellation(racing(), offer.session, (index) =>
          service.call('POST', request.response_uri, { form: forms[index] ?? {} }),
        );
        expectOneWinner(outcome, /^4\d\d invalid_request$/);
      }
    });
  },
];

const CALLERS = 50;

function credentialType(credential: string): string {
  return JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString()).vct;
}

function grantId(accessToken: string): string {
  return JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()).grant_id;
}

export const singleUseValues: RaceSuite = [
  'concurrent use of a single-use value',
  (racing) => {
    it('redeems a pre-authorized code once', async () => {
      const { service, token, wallet } = racing();
      for (let attempt = 0; attempt < 3; attempt++) {
        const { uri } = await createResource(service, token, '/issuer/offer', offerBody('pid'));
        const code = await wallet.code(uri);
        const wallets = Array.from({ length: CALLERS }, () => new RawWallet(service, wallet.tenant));
        const answers = await Promise.all(wallets.map((wallet) => wallet.redeem(code)));
        expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '400 invalid_grant': CALLERS - 1 });
        // The rejected requests did not affect the successful one.
        const credentialResponses = await Promise.all(
          wallets.map((wallet, index) => wallet.request(answers[index]?.body.access_token ?? 'none', 'pid')),
        );
        expect(countOutcomes(credentialResponses)).to.deep.equal({ 200: 1, '401 invalid_token': CALLERS - 1 });
      }
    });

    it('creates one grant for one wallet from any number of requests with a pre-authorized code', async () => {
      const { service, token, wallet } = racing();
      const { uri } = await createResource(service, token, '/issuer/offer', offerBody('pid'));
      const code = await wallet.code(uri);
      const answers = await callInParallel(CALLERS, () => wallet.redeem(code));
      expect(countOutcomes(answers)).to.deep.equal({ 200: CALLERS });
      const grants = answers.map(({ body }) => [grantId(body.access_token), body.refresh_token].join(' '));
      expect(new Set(grants).size).to.equal(1);
      const lastToken = answers.at(-1)?.body.access_token;
      expect((await wallet.request(lastToken, 'pid')).status).to.equal(200);
      expect(countOutcomes(await callInParallel(CALLERS, () => wallet.redeem(code)))).to.deep.equal({ '400 invalid_grant': CALLERS });
    });

    it('accepts a nonce once from 50 sessions', async () => {
      const { wallet } = racing();
      const sessions = await prepareSessions(racing(), CALLERS);
      const nonce = await wallet.nonce();
      const answers = await callInParallel(CALLERS, (index) => wallet.request(sessions[index]?.accessToken ?? '', 'pid', { nonce }));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '400 invalid_nonce': CALLERS - 1 });
      // The rejected sessions succeed with their own nonces.
      const repeatedRequests = await callInParallel(CALLERS, (index) => wallet.request(sessions[index]?.accessToken ?? '', 'pid'));
      expect(countOutcomes(repeatedRequests)).to.deep.equal({ 200: CALLERS });
    });

    it('accepts a DPoP proof once with 50 nonces', async () => {
      const { wallet } = racing();
      const [session] = await prepareSessions(racing(), 1);
      const headers = wallet.authorization(session?.accessToken ?? '');
      const nonces = await callInParallel(CALLERS, () => wallet.nonce());
      const answers = await callInParallel(CALLERS, (index) => wallet.request('', 'pid', { headers, nonce: nonces[index] ?? '' }));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '401 invalid_dpop_proof': CALLERS - 1 });
    });

    it('accepts one response to a presentation request', async () => {
      const { service, token, wallet } = racing();
      const holder = newKey();
      const [session] = await prepareSessions(racing(), 1);
      const credentialResponse = await wallet.request(session?.accessToken ?? '', 'pid', { key: holder });
      const credential = credentialResponse.body.credentials[0].credential as string;
      const { webhook: _webhook, ...question } = presentationBody('question', 'signing');
      const credentials = [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: [credentialType(credential)] } }];
      await createResource(service, token, '/verifier/config', { ...question, dcql_query: { credentials } });
      for (let attempt = 0; attempt < 3; attempt++) {
        const json = { response_type: 'uri', requestId: 'question' };
        const offer = await createResource(service, token, '/verifier/offer', json);
        const request = await fetchRequest(service, offer.uri);
        const forms = await callInParallel(CALLERS, () => makeResponse(request, credential, holder));
        const answers = await callInParallel(CALLERS, (index) => service.call('POST', request.response_uri, { form: forms[index] ?? {} }));
        expect(countOutcomes(answers), answers[0]?.text).to.deep.equal({ 200: 1, '400 invalid_request': CALLERS - 1 });
        const sessionResponse = await service.call('GET', `/session/${offer.session}`, { token });
        expect(sessionResponse.body.status, sessionResponse.text).to.equal('completed');
        expect(sessionResponse.body.credentials).to.have.length(1);
      }
    });

    it('returns the secret of a client once', async () => {
      const { service, token } = racing();
      await createResource(service, token, '/client', { clientId: 'picked', roles: ['issuance:offer'] });
      const answers = await callInParallel(20, () => service.call('GET', '/client/picked/secret', { token }));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '410 gone': 19 });
    });
  },
];
