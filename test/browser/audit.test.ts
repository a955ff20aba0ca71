import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { AUDIT_ACTIONS, AUDIT_KINDS } from '../../domain/audit/audit-entry.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { ACTIONS, KINDS } from '../../packages/console/src/pages/audit/audit-words.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

describe('audit log page', function () {
  this.timeout(60_000);
  let visitors: Visitors;
  let database: TestDatabase | undefined;

  before(async function () {
    database = await databases()[0]?.open();
    const started = await Visitors.start({ DATABASE_URL: database?.url ?? '' });
    if (started === undefined) return this.skip();
    visitors = started;
    const json = { roles: ['issuance:offer'], clientId: 'planted' };
    await visitors.served.service.call('POST', '/client', { token: visitors.token, json });
  });
  after(async () => {
    await visitors?.served.close();
    await database?.drop();
  });
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  it('offers the filters of the API', () => {
    expect(KINDS).to.have.members(AUDIT_KINDS);
    expect(ACTIONS).to.have.members(AUDIT_ACTIONS);
  });

  it('shows the actor and the action, filtered and sorted by the service', async () => {
    const page = await visitors.as(['clients:manage'], 'audit');
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByText('planted').first().waitFor();
    await expectAccessible(page, 'audit log');
    await page.getByLabel('Kind').selectOption('key-chain');
    await table.getByText('planted').waitFor({ state: 'detached' });
    await table.getByText('trust-list', { exact: true }).waitFor();
    expect(page.url()).to.include('kind=key-chain');
    await page.getByLabel('Kind').selectOption('');
    await page.getByLabel('Id of the changed object').fill('planted');
    await table.getByText('signing', { exact: true }).waitFor({ state: 'detached' });
    await table.locator('summary').first().click();
    const set = table.getByRole('region', { name: 'Set', exact: true }).first();
    await set.getByText('roles', { exact: true }).waitFor();
    await set.getByText('issuance:offer').waitFor();
    const untold = table.getByRole('region', { name: 'Values not in the log' });
    await untold.first().getByText('secret', { exact: true }).waitFor();
    await expectAccessible(page, 'an entry in full');
    await page.getByLabel('Id of the changed object').fill('');
    await page.getByLabel('Id of the changed object').press('Enter');
    await page.getByRole('button', { name: /Number/ }).click();
    await table.getByRole('row').nth(1).getByRole('cell').first().getByText('1', { exact: true }).waitFor();
  });

  it('verifies the chain on a button click, shows the first broken entry and the command for a full verification', async () => {
    const page = await visitors.as(['clients:manage'], 'audit');
    const verify = page.getByRole('region', { name: 'Was anything altered or removed?' });
    await verify.getByRole('button', { name: 'Verify now' }).click();
    await verify.getByText(/The log is whole up to entry \d+\./).waitFor();
    await verify.getByText('What this cannot find').click();
    await verify.getByText('npm run audit:verify').waitFor();
    await verify.getByRole('button', { name: 'Copy the command' }).waitFor();
    await expectAccessible(page, 'verified');
    const store = visitors.served.service.service.container.get(Store);
    const [planted] = await store.forTenant(visitors.tenantId as TenantId, ({ audit }) => audit.list({ target: 'planted', limit: 1 }));
    const tamper = (actor: string) =>
      rawSql(database?.url ?? '', (run) =>
        run(`update audit_entries set actor = '${actor}' where tenant_id = 'acme' and sequence = ${planted?.sequence}`),
      );
    await tamper('somebody-else');
    try {
      await verify.getByRole('button', { name: 'Verify now' }).click();
      await verify.getByText(`Entry ${planted?.sequence} is the first that is wrong`).waitFor();
      await verify.getByText('The log is not as the service wrote it.').waitFor();
      await expectAccessible(page, 'broken');
    } finally {
      await tamper(planted?.actor ?? '');
    }
  });

  it('verifies the chain in steps, with progress and a stop button', async () => {
    const page = await visitors.as(['clients:manage'], 'audit', { width: 390, dark: true });
    let calls = 0;
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/audit-log/verification*', async (route) => {
      calls += 1;
      const { searchParams } = new URL(route.request().url());
      expect(searchParams.get('cursor')).to.equal(calls === 1 ? null : `${calls - 1}.h`);
      if (calls === 3) await held;
      await route.fulfill({ json: { status: 'unfinished', verified: calls, length: 9, next: `${calls}.h` } }).catch(() => {});
    });
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.getByText('Entry 2 of 9: whole so far.').waitFor();
    await page.getByRole('progressbar', { name: 'Entries verified' }).waitFor();
    await expectAccessible(page, 'verifying');
    await expectFits(page, 'verifying at 390 px');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped. Entry 2 of 9: whole so far.').waitFor();
    release();
    await page.getByRole('button', { name: 'Verify now' }).waitFor();
    expect(calls).to.equal(3);
  });

  it('shows the operator the audit log of the service and of each tenant', async () => {
    const page = await visitors.asOperator('audit');
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByText('begun').waitFor();
    await page.getByLabel('Log of').selectOption('acme');
    await table.getByText('planted').first().waitFor();
  });

  it('fits a phone in dark mode', async () => {
    const page = await visitors.as(['clients:manage'], 'audit', { width: 390, dark: true });
    await page.getByText('planted').first().waitFor();
    await expectFits(page, 'audit log at 390 px');
    await expectAccessible(page, 'audit log in the dark');
  });
});
