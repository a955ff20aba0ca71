import { expect } from 'chai';
import { FulfilRevocations } from '../../../application/status-lists/fulfil-revocations.ts';
import { obtain } from '../../../bootstrap/wiring/wire.ts';
import { Backend } from '../../support/backend.ts';
import { createResource, credentialBody, offerBody } from '../../support/populated.ts';
import { decode } from '../../support/present.ts';
import {
  callInParallel,
  countOutcomes,
  prepareSessions,
  type RaceContext,
  type RaceSuite,
  readStatusList,
  type StatusEntry,
  statusEntryOf,
} from '../../support/raced-services.ts';
import { keyProof, newKey, RawWallet } from '../../support/raw-wallet.ts';
import { type Answer, createTenant } from '../../support/test-service.ts';

function statusEntries(answers: readonly Answer[]): StatusEntry[] {
  const credentials = answers.flatMap(({ body }) => body.credentials as { credential: string }[]);
  return credentials.map(({ credential }) => statusEntryOf(credential));
}

/** Expects unique indices within their lists, all valid. */
async function expectOwnEntries(racing: RaceContext, entries: readonly StatusEntry[]): Promise<void> {
  expect(new Set(entries.map(({ uri, idx }) => `${uri} ${idx}`)).size).to.equal(entries.length);
  for (const uri of new Set(entries.map((entry) => entry.uri))) {
    for (const process of racing.addresses) {
      const list = await readStatusList(racing, process, uri);
      for (const { idx } of entries.filter((entry) => entry.uri === uri)) {
        expect(idx).to.be.within(0, list.capacity - 1);
        expect(list.at(idx)).to.equal(0);
      }
    }
  }
}

/** Creates another tenant that issues `pid`. */
async function createOtherTenant(
  { service, addresses }: RaceContext,
  id: string,
  statusListConfig: object,
  batchSize = 1,
): Promise<RaceContext> {
  const { token } = await createTenant(service, id, { statusListConfig });
  await createResource(service, token, '/issuer/credentials', credentialBody('pid', 'signing'));
  await createResource(service, token, '/issuer/config', { display: [{ name: 'Issuer', locale: 'en' }], batchSize });
  return { service, addresses, token, wallet: new RawWallet(service, id) };
}

/** Sends concurrent credential requests, one per session, with `batch` proofs. */
async function issue(racing: RaceContext, count: number, batch = 1) {
  const { wallet } = racing;
  const sessions = await prepareSessions(racing, count);
  const nonces = await callInParallel(count, () => wallet.nonce());
  const answers = await callInParallel(count, (index) => {
    const jwt = Array.from({ length: batch }, () => keyProof(newKey(), wallet.issuer, nonces[index] ?? ''));
    const body = { credential_configuration_id: 'pid', proofs: { jwt } };
    return wallet.request(sessions[index]?.accessToken ?? '', 'pid', { body });
  });
  expect(countOutcomes(answers)).to.deep.equal({ 200: count });
  return { sessions, entries: statusEntries(answers) };
}

export const statuses: RaceSuite = [
  'concurrent use of status lists',
  (racing) => {
    it('assign no index to two of 200 credentials', async () => {
      const { entries } = await issue(racing(), 200);
      expect(entries).to.have.length(200);
      await expectOwnEntries(racing(), entries);
    });

    it('assign no index to two credentials when lists are small and become full', async () => {
      const smallTenant = await createOtherTenant(racing(), 'small', { capacity: 104 }, 3);
      const { entries } = await issue(smallTenant, 90, 3);
      expect(entries).to.have.length(270);
      expect(new Set(entries.map(({ uri }) => uri)).size, 'lists').to.be.within(3, 8);
      await expectOwnEntries(smallTenant, entries);
    });

    it('keep all of 100 simultaneous revocations', async () => {
      const revokingTenant = await createOtherTenant(racing(), 'revoking', { immediateUpdate: true });
      const { service, token, addresses } = revokingTenant;
      const { sessions, entries } = await issue(revokingTenant, 110);
      // All processes cache the lists before the revocation, so the change must reach their caches.
      await expectOwnEntries(revokingTenant, entries);
      const answers = await callInParallel(100, (index) => {
        const json = { sessionId: sessions[index]?.session, status: 1 };
        return service.call('POST', '/session/revoke', { token, json });
      });
      expect(countOutcomes(answers)).to.deep.equal({ 201: 100 });
      // Other processes poll the database twice a second.
      if (addresses.length > 1) await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of addresses) {
        const lists = new Map<string, Awaited<ReturnType<typeof readStatusList>>>();
        for (const uri of new Set(entries.map((entry) => entry.uri))) {
          lists.set(uri, await readStatusList(revokingTenant, process, uri));
        }
        const statuses = entries.map(({ uri, idx }) => lists.get(uri)?.at(idx));
        expect(statuses).to.deep.equal(entries.map((_, index) => (index < 100 ? 1 : 0)));
      }
    });

    it('stay revoked when they are reinstated simultaneously', async () => {
      const finalStatuses = await createOtherTenant(racing(), 'final', { immediateUpdate: true, bits: 2 });
      const { service, token } = finalStatuses;
      const { sessions, entries } = await issue(finalStatuses, 10);
      const change = (index: number, status: number) => {
        const json = { sessionId: sessions[index]?.session, status };
        return service.call('POST', '/session/revoke', { token, json });
      };
      const answers = await callInParallel(120, (index) => change(index % 10, [2, 0, 1, 0][index % 4] ?? 0));
      expect(Object.keys(countOutcomes(answers)).sort()).to.deep.equal(['201', '409 conflict']);
      for (let index = 0; index < 10; index++) {
        expect((await change(index, 1)).status).to.equal(201);
        expect((await change(index, 0)).status).to.equal(409);
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of finalStatuses.addresses) {
        for (const { uri, idx } of entries) expect((await readStatusList(finalStatuses, process, uri)).at(idx)).to.equal(1);
      }
    });

    it('are correct after simultaneous suspensions and reinstatements of sessions', async () => {
      const suspendingTenant = await createOtherTenant(racing(), 'flipping', { immediateUpdate: true, bits: 2 });
      const { service, token } = suspendingTenant;
      const { sessions, entries } = await issue(suspendingTenant, 20);
      const answers = await callInParallel(80, (index) => {
        const json = { sessionId: sessions[index % 20]?.session, status: index < 40 ? (index % 2) * 2 : 2 };
        return service.call('POST', '/session/revoke', { token, json });
      });
      expect(countOutcomes(answers)).to.deep.equal({ 201: 80 });
      for (const { session } of sessions) {
        const json = { sessionId: session, status: 2 };
        expect((await service.call('POST', '/session/revoke', { token, json })).status).to.equal(201);
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of suspendingTenant.addresses) {
        for (const { uri, idx } of entries) {
          expect((await readStatusList(suspendingTenant, process, uri)).at(idx)).to.equal(2);
        }
      }
    });
  },
];

export const removedStatusLists: RaceSuite = [
  'status lists that administrators remove',
  (racing) => {
    it('are either removed or serve their entries when many credentials are issued at once', async () => {
      const { service, token, wallet } = racing();
      const createdLists: { id: string; uri: string }[] = [];
      for (let i = 0; i < 12; i++) createdLists.push(await createResource(service, token, '/status-lists', { capacity: 100 }));
      const sessions = await prepareSessions(racing(), 30);
      const issuances = callInParallel(30, (i) => wallet.request(sessions[i]?.accessToken ?? '', 'pid'));
      const removals = callInParallel(36, (i) =>
        service.call('DELETE', `/status-lists/${createdLists[i % createdLists.length]?.id}`, { token }),
      );
      const [issuedResponses, removedResponses] = [await issuances, await removals];
      expect(countOutcomes(issuedResponses)).to.deep.equal({ 200: 30 });
      for (const answer of removedResponses) expect(answer.status, answer.text).to.be.oneOf([204, 404, 409]);
      const entries = issuedResponses.map(({ body }) => decode(body.credentials[0].credential).payload['status'].status_list);
      expect(new Set(entries.map(({ uri, idx }) => `${uri} ${idx}`)).size).to.equal(30);
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const uri of new Set(entries.map((entry) => entry.uri))) {
        expect((await service.call('GET', uri)).status, uri).to.equal(200);
      }
      const remainingLists = (await service.call('GET', '/status-lists', { token })).body;
      const remainingUris = remainingLists.map(({ uri }: { uri: string }) => uri);
      for (const { uri } of entries) expect(remainingUris).to.include(uri);
      const removedLists = createdLists.filter(({ uri }) => !remainingUris.includes(uri));
      expect(removedResponses.filter(({ status }) => status === 204)).to.have.length(removedLists.length);
      for (const { uri } of removedLists) expect((await service.call('GET', uri)).status, uri).to.equal(404);
    });
  },
];

const CALLERS = 36;
const SESSIONS = 8;
const DEFERRED = 6;
const SUBJECT_NAMES = ['ada', 'bob'] as const;
type SubjectName = (typeof SUBJECT_NAMES)[number];

/** Credentials and pending requests of the wallets of one subject. */
type Holder = {
  readonly subject: SubjectName;
  readonly tokens: readonly string[];
  readonly credentials: readonly string[];
  readonly deferredCredentials: readonly { readonly accessToken: string; readonly transactionId: string }[];
};

const credentialTexts = (answers: readonly Answer[]): readonly string[] =>
  answers.flatMap(({ status, body }) =>
    status === 200 ? (body.credentials as { credential: string }[]).map(({ credential }) => credential) : [],
  );

export const subjects: RaceSuite = [
  'concurrent revocation by subject',
  (racing) => {
    let backend: Backend;
    before(async () => {
      backend = await Backend.start();
      backend.on('/claims', { json: { deferred: true } });
      const { service, token } = racing();
      const json = { immediateUpdate: true };
      expect((await service.call('PUT', '/status-list-config', { token, json })).status).to.equal(200);
      const { schema: _schema, claims: _claims, disclosureFrame: _frame, ...base } = credentialBody('', '');
      const subjectOf = { ...base, keyChainId: 'signing', subjectClaims: [['number']] };
      await createResource(service, token, '/issuer/credentials', { ...subjectOf, id: 'card' });
      const claimsWebhook = { url: `${backend.url}/claims` };
      await createResource(service, token, '/issuer/credentials', { ...subjectOf, id: 'late', claimsWebhook });
    });
    after(() => backend.close());

    it('revokes all earlier credentials, each counted once, and no credentials of other subjects', async () => {
      const [ada, bob] = [await createHolder('ada'), await createHolder('bob')];
      const calls: Answer[] = [];
      const issuedCredentials = { ada: [] as string[], bob: [] as string[] };
      const issuedByOldTokens: string[] = [];
      const issueDuringRevocation = async ({ subject: person, tokens, deferredCredentials: late }: Holder) => {
        const { wallet, service, token } = racing();
        const renewed = callInParallel(tokens.length * 2, (index) => wallet.request(tokens[index % tokens.length] ?? '', 'card'));
        const decided = callInParallel(late.length, (index) =>
          service.call('POST', `/issuer/deferred/${late[index]?.transactionId}/complete`, { token, json: { claims: { number: person } } }),
        );
        const newIssuances = callInParallel(SESSIONS, async () => wallet.request(await createOffer(person), 'card'));
        const renewedCredentials = credentialTexts(await renewed);
        if (person === 'ada') issuedByOldTokens.push(...renewedCredentials);
        issuedCredentials[person].push(...renewedCredentials, ...credentialTexts(await newIssuances));
        const decisions = countOutcomes(await decided);
        if (person === 'bob') expect(decisions).to.deep.equal({ 200: DEFERRED });
        else expect(Object.keys(decisions)).to.not.include('500');
      };
      const revocations = callInParallel(CALLERS, async (index) => {
        // Some calls at the same time, and some while those run.
        await new Promise((resolve) => setTimeout(resolve, (index % 4) * 60));
        calls.push(await revoke('ada'));
      });
      const workingRequests = callInParallel(6, async (index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 50));
        await job();
      });
      await Promise.all([revocations, workingRequests, issueDuringRevocation(ada), issueDuringRevocation(bob)]);
      while ((await job()) > 0);

      expect(countOutcomes(calls)).to.deep.equal({ 201: CALLERS });
      // A concurrent request was rejected, or its credential was revoked.
      await expectStatuses([...ada.credentials, ...issuedByOldTokens], 1);
      const repeatedRequests = await callInParallel(SESSIONS, (index) => racing().wallet.request(ada.tokens[index] ?? '', 'card'));
      expect(countOutcomes(repeatedRequests), repeatedRequests[0]?.text).to.deep.equal({ '401 invalid_token': SESSIONS });
      const auditCounts = await revokedByAudit();
      expect(auditCounts.all).to.equal(await revokedInLists());
      expect(calls.reduce((sum, { body }) => sum + body.revoked, 0)).to.equal(auditCounts.byCalls);

      // Credentials issued after the calls are revoked by the next call.
      const lastRevocation = await revoke('ada');
      expect(lastRevocation.body.pending).to.equal(0);
      const adaCredentials = [...ada.credentials, ...issuedCredentials.ada, ...(await fetchDeferred(ada))];
      const bobCredentials = [...bob.credentials, ...issuedCredentials.bob, ...(await fetchDeferred(bob))];
      expect(bobCredentials).to.have.length(SESSIONS * 4 + DEFERRED);
      await expectStatuses(adaCredentials, 1);
      await expectStatuses(bobCredentials, 0);
      expect((await revokedByAudit()).all).to.equal(await revokedInLists());
      expect((await revoke('ada')).body).to.deep.equal({ revoked: 0, pending: 0 });
      expect((await revoke('bob')).body.revoked).to.equal(bobCredentials.length);
    });

    async function createOffer(subject: SubjectName, configuration = 'card'): Promise<string> {
      const { service, token, wallet } = racing();
      const claims = { type: 'inline', claims: { number: subject } };
      const body = { ...offerBody(configuration), ...(configuration === 'card' && { credentialClaims: { card: claims } }) };
      return wallet.accessToken((await createResource(service, token, '/issuer/offer', body)).uri);
    }

    async function createHolder(person: SubjectName): Promise<Holder> {
      const { wallet } = racing();
      const tokens = await callInParallel(SESSIONS, () => createOffer(person));
      const firstIssuances = await callInParallel(SESSIONS, (index) => wallet.request(tokens[index] ?? '', 'card'));
      expect(countOutcomes(firstIssuances), firstIssuances[0]?.text).to.deep.equal({ 200: SESSIONS });
      const late = await callInParallel(DEFERRED, async () => {
        const accessToken = await createOffer(person, 'late');
        const answer = await wallet.request(accessToken, 'late');
        expect(answer.status, answer.text).to.equal(202);
        return { accessToken, transactionId: answer.body.transaction_id as string };
      });
      return { subject: person, tokens, credentials: credentialTexts(firstIssuances), deferredCredentials: late };
    }

    const fetchDeferred = async ({ deferredCredentials: late }: Holder) =>
      credentialTexts(
        await callInParallel(late.length, (index) => {
          const { accessToken = '', transactionId } = late[index] ?? {};
          const { service, wallet } = racing();
          return service.call('POST', `/${wallet.tenant}/deferred_credential`, {
            headers: wallet.authorization(accessToken, { path: 'deferred_credential' }),
            json: { transaction_id: transactionId },
          });
        }),
      );

    const revoke = (number: SubjectName) => {
      const { service, token } = racing();
      return service.call('POST', '/credentials/revoke-by-subject', { token, json: { claims: { number } } });
    };

    const job = () => obtain(racing().service.service.container, FulfilRevocations).execute(new Date(), 100);

    async function expectStatuses(credentials: readonly string[], status: number): Promise<void> {
      // Other processes poll the database twice a second.
      await new Promise((resolve) => setTimeout(resolve, 600));
      const entries = credentials.map(statusEntryOf);
      for (const process of racing().addresses) {
        const lists = await readLists(racing(), process, new Set(entries.map(({ uri }) => uri)));
        const statuses = entries.map(({ uri, idx }) => lists.get(uri)?.at(idx));
        expect(statuses).to.deep.equal(entries.map(() => status));
      }
    }

    /** Counts revoked entries in all lists of the tenant. */
    async function revokedInLists(): Promise<number> {
      const { service, token, wallet, addresses } = racing();
      const lists = (await service.call('GET', '/status-lists', { token })).body as { id: string }[];
      const uris = lists.map(({ id }) => `${wallet.issuer}/status-list/${id}`);
      let count = 0;
      for (const { capacity, at } of (await readLists(racing(), addresses[0] ?? '', uris)).values())
        for (let idx = 0; idx < capacity; idx++) if (at(idx) === 1) count++;
      return count;
    }

    /** Number of revoked credentials in the audit log, and how many of them by calls. */
    async function revokedByAudit() {
      const { service, token } = racing();
      const answer = await service.call('GET', '/audit-log?action=revoked&kind=session&limit=500', { token });
      expect(answer.status, answer.text).to.equal(200);
      const revocationCounts = (answer.body as { actor: string; changes: { member: string; after: number }[] }[]).map(
        ({ actor, changes }) => ({
          isJob: actor === 'system',
          count: changes.find(({ member }) => member === 'credentials')?.after ?? Number.NaN,
        }),
      );
      const sum = (entries: typeof revocationCounts) => entries.reduce((total, { count }) => total + count, 0);
      return { all: sum(revocationCounts), byCalls: sum(revocationCounts.filter(({ isJob }) => !isJob)) };
    }
  },
];

async function readLists(racing: RaceContext, process: string, uris: Iterable<string>) {
  const lists = new Map<string, Awaited<ReturnType<typeof readStatusList>>>();
  for (const uri of uris) lists.set(uri, await readStatusList(racing, process, uri));
  return lists;
}
