import { expect } from 'chai';
import { CONFIGURED_KINDS } from '../../domain/tenants/revisions.ts';
import { rawSql } from '../support/databases.ts';
import { createTenant, type TestService } from '../support/test-service.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const BEFORE = 'Migration00000000000007_sealed_errors';
const card = (name: string) => ({
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name, locale: 'en' }] },
  vct: 'urn:card',
  claims: { name: 'Ada' },
});

/** What wallets are told the credential is called: by the configuration as the process knows it. */
async function shownName(service: TestService): Promise<string> {
  const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
  return body.credential_configurations_supported.card.credential_metadata.display[0].name;
}

describeUpgrade('A database of one revision for each tenant', (upgrade, kind) => {
  it('goes on with all that was configured, and with what was begun', async () => {
    const { url, start, goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    const made = async (service: TestService, method: string, path: string, json: object) => {
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    await made(older, 'POST', '/issuer/credentials', card('Card'));
    const offer = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
    };
    const { session } = await made(older, 'POST', '/issuer/offer', offer);
    await older.close();
    await goBack(BEFORE);

    const service = await start();
    expect(await shownName(service)).to.equal('Card');
    expect((await service.call('GET', `/session/${session}`, { token })).body.status).to.equal('active');
    await made(service, 'PATCH', '/issuer/credentials/card', { config: card('Pass').config });
    expect(await shownName(service)).to.equal('Pass');
    await made(service, 'POST', '/issuer/offer', offer);
    await service.close();
    const [row] = await rawSql(url, (run) => run('select revisions from tenants'));
    const revisions =
      typeof row?.['revisions'] === 'string' ? JSON.parse(row['revisions']) : row?.['revisions'];
    expect(revisions, 'a migration gives new kinds to the tenants that there are').to.include.all.keys(
      ...CONFIGURED_KINDS,
    );
  });

  // SQLite belongs to one process.
  if (kind === 'sqlite') return;

  it('may be written by a process of the release before, while both run', async () => {
    const { url, start } = upgrade();
    const service = await start();
    const { token } = await createTenant(service, 'acme');
    await service.call('POST', '/issuer/credentials', { token, json: card('Card') });
    const bodies = await rawSql(url, (run) => run('select body from credential_configurations'));
    const change = { token, json: { config: card('Pass').config } };
    expect((await service.call('PATCH', '/issuer/credentials/card', change)).status).to.equal(200);
    expect(await shownName(service)).to.equal('Pass');

    // It knows of one revision, which it raises with each write.
    await rawSql(url, async (run) => {
      await run(`update credential_configurations set body = '${bodies[0]?.['body']}'`);
      await run("update tenants set revision = revision + 1 where id = 'acme'");
    });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await shownName(service)).to.equal('Card');
  });
});
