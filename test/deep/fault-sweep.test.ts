import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { Backend } from '../support/backend.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { type FaultMode, Faults } from '../support/faults.ts';
import { CLIENT_ID, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** A flow whose step is interrupted at every call. */
type FaultFlow = {
  readonly session: string;
  /** The tested step; each repetition creates new proofs. */
  readonly step: () => Promise<Answer>;
  /** Statuses of the step when nothing fails. */
  readonly done: number;
  /** Whether a failed step may succeed when repeated. */
  readonly mayRepeat: boolean;
};

/** Upper bound for the number of calls of a step. */
const MAX_CALLS = 40;

for (const kind of databases()) {
  describe(`failed call, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let backend: Backend;
    let tenant: { id: string; token: string };
    let faults: Faults;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      backend = await Backend.start();
      service = await startTestService({ DATABASE_URL: database.url });
      tenant = await createTenant(service, 'acme');
      const base = {
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
        statusManagement: true,
      };
      const claimsWebhook = { url: `${backend.url}/claims` };
      await post('/issuer/credentials', { ...base, id: 'card', claims: { name: 'Ada' } });
      await post('/issuer/credentials', { ...base, id: 'hooked', vct: 'urn:hooked:1', claimsWebhook });
      await post('/issuer/credentials', { ...base, id: 'slow', vct: 'urn:slow:1', claimsWebhook: { url: `${backend.url}/deferred` } });
      backend.on('/claims', { json: { hooked: { name: 'Ada' } } });
      backend.on('/deferred', { json: { deferred: true } });
      faults = new Faults(service.service);
    });
    after(async () => {
      await service?.close();
      await backend?.close();
      await database?.drop();
    });

    const post = async (path: string, json: object) => {
      const answer = await service.call('POST', path, { token: tenant.token, json });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    const offer = (id: string, flow = 'pre_authorized_code') =>
      post('/issuer/offer', { response_type: 'uri', flow, credentialConfigurationIds: [id] });
    const steps = () => stepsOf(service.service.container.get(Store), 'acme' as TenantId);
    const wallet = () => new RawWallet(service, 'acme');

    const deferral = async () => {
      const { uri, session } = await offer('slow');
      const ownWallet = wallet();
      const token = await ownWallet.accessToken(uri);
      const answer = await ownWallet.request(token, 'slow');
      expect(answer.status, answer.text).to.equal(202);
      return { session, own: ownWallet, token, transactionId: String(answer.body.transaction_id) };
    };

    const flows: Readonly<Record<string, () => Promise<FaultFlow>>> = {
      'redeeming a pre-authorized code': async () => {
        const { uri, session } = await offer('card');
        const ownWallet = wallet();
        const code = await ownWallet.code(uri);
        return { session, step: () => ownWallet.redeem(code), done: 200, mayRepeat: true };
      },
      'pushing a request': async () => {
        const { uri, session } = await offer('card', 'authorization_code');
        const ownWallet = wallet();
        const { grants } = (await ownWallet.offer(uri)) as { grants: Record<string, Record<string, string>> };
        const issuer_state = grants['authorization_code']?.['issuer_state'] ?? '';
        return { session, step: () => ownWallet.par({ issuer_state, scope: 'card' }), done: 201, mayRepeat: true };
      },
      'approving on the page': async () => {
        const { uri, session } = await offer('card', 'authorization_code');
        const ownWallet = wallet();
        const requestUri = await ownWallet.push(uri, 'card');
        return { session, step: () => ownWallet.decide(requestUri), done: 303, mayRepeat: false };
      },
      'redeeming an authorization code': async () => {
        const { uri, session } = await offer('card', 'authorization_code');
        const ownWallet = wallet();
        const code = await ownWallet.authorize(await ownWallet.push(uri, 'card'));
        return { session, step: () => ownWallet.redeemCode(code), done: 200, mayRepeat: false };
      },
      'using a refresh token': async () => {
        const { uri, session } = await offer('card', 'authorization_code');
        const ownWallet = wallet();
        const code = await ownWallet.authorize(await ownWallet.push(uri, 'card'));
        const { refresh_token: token } = (await ownWallet.redeemCode(code)).body;
        const step = () => ownWallet.refresh(token, { client_id: CLIENT_ID });
        return { session, step, done: 200, mayRepeat: true };
      },
      'issuing with claims at hand': async () => {
        const { uri, session } = await offer('card');
        const ownWallet = wallet();
        const token = await ownWallet.accessToken(uri);
        return { session, step: () => ownWallet.request(token, 'card'), done: 200, mayRepeat: true };
      },
      'issuing with claims of a backend': async () => {
        const { uri, session } = await offer('hooked');
        const ownWallet = wallet();
        const token = await ownWallet.accessToken(uri);
        return { session, step: () => ownWallet.request(token, 'hooked'), done: 200, mayRepeat: true };
      },
      'putting an issuance off': async () => {
        const { uri, session } = await offer('slow');
        const ownWallet = wallet();
        const token = await ownWallet.accessToken(uri);
        return { session, step: () => ownWallet.request(token, 'slow'), done: 202, mayRepeat: true };
      },
      'completing a deferred credential': async () => {
        const { session, transactionId } = await deferral();
        const path = `/issuer/deferred/${transactionId}/complete`;
        const json = { claims: { name: 'Ada' } };
        const step = () => service.call('POST', path, { token: tenant.token, json });
        return { session, step, done: 200, mayRepeat: false };
      },
      'fetching a deferred credential': async () => {
        const { session, own: ownWallet, token, transactionId } = await deferral();
        await post(`/issuer/deferred/${transactionId}/complete`, { claims: { name: 'Ada' } });
        const step = () =>
          service.call('POST', '/acme/deferred_credential', {
            headers: ownWallet.authorization(token, { path: 'deferred_credential' }),
            json: { transaction_id: transactionId },
          });
        return { session, step, done: 200, mayRepeat: false };
      },
      'a notification': async () => {
        const { uri, session } = await offer('card');
        const ownWallet = wallet();
        const token = await ownWallet.accessToken(uri);
        const { notification_id } = (await ownWallet.request(token, 'card')).body;
        const step = () =>
          service.call('POST', '/acme/notification', {
            headers: ownWallet.authorization(token, { path: 'notification' }),
            json: { notification_id, event: 'credential_accepted' },
          });
        return { session, step, done: 204, mayRepeat: true };
      },
    };

    for (const [description, startFlow] of Object.entries(flows)) {
      for (const mode of ['before', 'after'] as const) {
        it(`leaves ${description} before or after a step when the call fails ${mode} its effect`, async () => {
          let n = 1;
          for (; n <= MAX_CALLS; n++) if (!(await sweep(await startFlow(), n, mode))) break;
          expect(n, 'calls that were broken off').to.be.within(2, MAX_CALLS);
        });
      }
    }

    /** Fails the n-th call of a step and repeats the step. @returns false when the step makes fewer calls. */
    async function sweep(flow: FaultFlow, n: number, mode: FaultMode): Promise<boolean> {
      const { session, step, done, mayRepeat } = flow;
      faults.arm(n, mode);
      const failedResponse = await step();
      if (!faults.disarm()) {
        expect(failedResponse.status, `the call did not fail: ${failedResponse.text}`).to.equal(done);
        return false;
      }
      const callDescription = `call ${n}, ${mode}`;
      expect(failedResponse.text, callDescription).not.to.match(/fails (before|after)/);
      const repeatedResponse = await step();
      expect(repeatedResponse.status, `${callDescription}, repeated: ${repeatedResponse.text}`).to.be.lessThan(500);
      const successes = [failedResponse, repeatedResponse].filter(({ status }) => status === done).length;
      // A single-use step succeeded at most once, and each success has an effect.
      if (!mayRepeat) expect(successes, `${callDescription}: ${failedResponse.status} ${repeatedResponse.status}`).to.be.at.most(1);
      await expectConsistent(session, callDescription);
      return true;
    }

    /** Expects unique status entries, and a session that agrees with the stored batches. */
    async function expectConsistent(sessionId: string, callDescription: string): Promise<void> {
      const session = (await steps().session(sessionId as SessionId))?.session;
      const batches = (await steps().issued(sessionId as SessionId))?.batches ?? [];
      const entries = batches.flatMap((batch) =>
        Array.from({ length: batch.count }, (_, index) => `${batch.statusListId} ${(batch.firstCounter ?? 0) + index}`),
      );
      expect(new Set(entries).size, `${callDescription}: entries`).to.equal(entries.length);
      if (session?.status === 'completed') expect(batches, `${callDescription}: completed without a credential`).not.to.be.empty;
      const transactions = await steps().deferredTransactions({ sessionId: sessionId as SessionId, limit: 100 });
      for (const { status, batchId } of transactions) {
        const isRecorded = batches.some(({ id }) => id === batchId);
        expect(isRecorded, `${callDescription}: ${status}`).to.equal(status === 'ready' || status === 'retrieved');
      }
    }
  });
}
