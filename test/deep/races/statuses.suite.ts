import { expect } from 'chai';
import { created, credentialBody } from '../../support/populated.ts';
import { type Entry, entryOf, readList } from '../../support/published-lists.ts';
import { type RacedSuite, type Racing, readySessions, tally, times } from '../../support/raced-services.ts';
import { keyProof, newKey, RawWallet } from '../../support/raw-wallet.ts';
import { type Answer, createTenant } from '../../support/test-service.ts';

function entriesOf(answers: readonly Answer[]): Entry[] {
  const credentials = answers.flatMap(({ body }) => body.credentials as { credential: string }[]);
  return credentials.map(({ credential }) => entryOf(credential));
}

/** No index twice, all inside their list, and all valid there. */
async function expectOwnEntries(racing: Racing, entries: readonly Entry[]): Promise<void> {
  expect(new Set(entries.map(({ uri, idx }) => `${uri} ${idx}`)).size).to.equal(entries.length);
  for (const uri of new Set(entries.map((entry) => entry.uri))) {
    for (const process of racing.addresses) {
      const list = await readList(racing, process, uri);
      for (const { idx } of entries.filter((entry) => entry.uri === uri)) {
        expect(idx).to.be.within(0, list.capacity - 1);
        expect(list.at(idx)).to.equal(0);
      }
    }
  }
}

/** Another tenant of the racing, which issues `pid` too. */
async function another(
  { service, addresses }: Racing,
  id: string,
  statusListConfig: object,
  batchSize = 1,
): Promise<Racing> {
  const { token } = await createTenant(service, id, { statusListConfig });
  await created(service, token, '/issuer/credentials', credentialBody('pid', 'signing'));
  await created(service, token, '/issuer/config', { display: [{ name: 'Issuer', locale: 'en' }], batchSize });
  return { service, addresses, token, wallet: new RawWallet(service, id) };
}

/** Many credential requests at once, of a session each, with `batch` proofs. */
async function issue(racing: Racing, count: number, batch = 1) {
  const { wallet } = racing;
  const sessions = await readySessions(racing, count);
  const nonces = await times(count, () => wallet.nonce());
  const answers = await times(count, (index) => {
    const jwt = Array.from({ length: batch }, () => keyProof(newKey(), wallet.issuer, nonces[index] ?? ''));
    const body = { credential_configuration_id: 'pid', proofs: { jwt } };
    return wallet.request(sessions[index]?.accessToken ?? '', 'pid', { body });
  });
  expect(tally(answers)).to.deep.equal({ 200: count });
  return { sessions, entries: entriesOf(answers) };
}

export const statuses: RacedSuite = [
  'Status lists',
  (racing) => {
    it('give no index to two of 200 credentials', async () => {
      const { entries } = await issue(racing(), 200);
      expect(entries).to.have.length(200);
      await expectOwnEntries(racing(), entries);
    });

    it('give no index to two credentials when lists are small and run full', async () => {
      const small = await another(racing(), 'small', { capacity: 104 }, 3);
      const { entries } = await issue(small, 90, 3);
      expect(entries).to.have.length(270);
      expect(new Set(entries.map(({ uri }) => uri)).size, 'lists').to.be.within(3, 8);
      await expectOwnEntries(small, entries);
    });

    it('lose none of 100 revocations at once', async () => {
      const revoking = await another(racing(), 'revoking', { immediateUpdate: true });
      const { service, token, addresses } = revoking;
      const { sessions, entries } = await issue(revoking, 110);
      // All processes hold the lists before anything is revoked, so the change must reach what they hold.
      await expectOwnEntries(revoking, entries);
      const answers = await times(100, (index) => {
        const json = { sessionId: sessions[index]?.session, status: 1 };
        return service.call('POST', '/session/revoke', { token, json });
      });
      expect(tally(answers)).to.deep.equal({ 201: 100 });
      // Another process looks at the database twice a second.
      if (addresses.length > 1) await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of addresses) {
        const lists = new Map<string, Awaited<ReturnType<typeof readList>>>();
        for (const uri of new Set(entries.map((entry) => entry.uri))) {
          lists.set(uri, await readList(revoking, process, uri));
        }
        const statuses = entries.map(({ uri, idx }) => lists.get(uri)?.at(idx));
        expect(statuses).to.deep.equal(entries.map((_, index) => (index < 100 ? 1 : 0)));
      }
    });

    it('stay revoked, whoever reinstates at the same moment', async () => {
      const final = await another(racing(), 'final', { immediateUpdate: true, bits: 2 });
      const { service, token } = final;
      const { sessions, entries } = await issue(final, 10);
      const change = (index: number, status: number) => {
        const json = { sessionId: sessions[index]?.session, status };
        return service.call('POST', '/session/revoke', { token, json });
      };
      const answers = await times(120, (index) => change(index % 10, [2, 0, 1, 0][index % 4] ?? 0));
      expect(Object.keys(tally(answers)).sort()).to.deep.equal(['201', '409 conflict']);
      for (let index = 0; index < 10; index++) {
        expect((await change(index, 1)).status).to.equal(201);
        expect((await change(index, 0)).status).to.equal(409);
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of final.addresses) {
        for (const { uri, idx } of entries) expect((await readList(final, process, uri)).at(idx)).to.equal(1);
      }
    });

    it('end up right when sessions are suspended and reinstated at once', async () => {
      const flipping = await another(racing(), 'flipping', { immediateUpdate: true, bits: 2 });
      const { service, token } = flipping;
      const { sessions, entries } = await issue(flipping, 20);
      const answers = await times(80, (index) => {
        const json = { sessionId: sessions[index % 20]?.session, status: index < 40 ? (index % 2) * 2 : 2 };
        return service.call('POST', '/session/revoke', { token, json });
      });
      expect(tally(answers)).to.deep.equal({ 201: 80 });
      for (const { session } of sessions) {
        const json = { sessionId: session, status: 2 };
        expect((await service.call('POST', '/session/revoke', { token, json })).status).to.equal(201);
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
      for (const process of flipping.addresses) {
        for (const { uri, idx } of entries) {
          expect((await readList(flipping, process, uri)).at(idx)).to.equal(2);
        }
      }
    });
  },
];
