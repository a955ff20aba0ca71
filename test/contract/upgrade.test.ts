import { expect } from 'chai';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import type { ChainReport } from '../../application/audit/chain-reports.ts';
import { VerifyAuditLog } from '../../application/audit/verify-audit-log.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Store } from '../../application/ports/store.ts';
import { QUERY } from '../support/present.ts';
import { createTenant, type TestService } from '../support/test-service.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const FIRST = 'Migration00000000000001_initial';
const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card',
  claims: { name: 'Ada' },
  disclosureFrame: { _sd: ['name'] },
  statusManagement: true,
};

/** Whatever port a service happens to have. */
const local = (text = '') => text.replaceAll(/localhost(:|%3A)\d+/g, 'localhost');

describeUpgrade('A database of the first release', (upgrade) => {
  it('is brought up to date with all that stands in it', async () => {
    const { start, goBack } = upgrade();
    const release = await start();
    const { token } = await createTenant(release, 'acme');
    const made = async (path: string, json: object) => {
      const answer = await release.call('POST', path, { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    await made('/issuer/credentials', CARD);
    await made('/verifier/config', { id: 'check', dcql_query: QUERY });
    const offer = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
    };
    const { session } = await made('/issuer/offer', offer);
    const paths = ['/client', '/issuer/credentials', '/verifier/config', '/key-chain', `/session/${session}`];
    const readAll = (from: TestService) =>
      Promise.all(paths.map(async (path) => (await from.call('GET', path, { token })).text));
    const before = await readAll(release);
    await release.close();

    // What came later is taken away, as if it had never been there.
    await goBack(FIRST);

    const service = await start();
    const after = await readAll(service);
    for (const [index, path] of paths.entries())
      expect(local(after[index]), path).to.equal(local(before[index]));
    const again = await service.call('POST', '/issuer/offer', { token, json: offer });
    expect(again.status, again.text).to.equal(201);
    for (const table of ['/audit-log', '/trust-list', '/status-lists']) {
      expect((await service.call('GET', table, { token })).status, table).to.equal(200);
    }

    // The tenant is older than the log, which says so.
    const { container } = service.service;
    const ports = { store: container.get(Store), macs: container.get(Cipher).macs(AUDIT_LOG) };
    const reports: ChainReport[] = [];
    for await (const report of new VerifyAuditLog(ports).execute()) reports.push(report);
    expect(reports.map(({ scope, fault }) => [scope, fault])).to.deep.equal([
      ['', undefined],
      ['acme', undefined],
    ]);
    expect(reports[0]?.warning).to.include('when there was 1 tenant already');
  });
});
