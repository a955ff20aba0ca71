import { expect } from 'chai';
import { rawSql } from '../support/databases.ts';
import { populate } from '../support/populated.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const BEFORE = 'Migration00000000000016_profiles';
const KEYS = `'[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]'`;

describeUpgrade('A database that kept keys of wallets', (upgrade) => {
  it('forgets those of transactions that are over, and no others', async () => {
    const { url, start, goBack } = upgrade();
    const older = await start();
    const { token, ids } = await populate(older, 'acme');
    await older.close();
    await goBack(BEFORE);
    const columns = `session_id, public_id, grant_id, credential_configuration_id, interval_seconds, credentials, batch_id,
      error_message, created_at, updated_at, expires_at, tenant_id`;
    await rawSql(url, async (run) => {
      for (const status of ['retrieved', 'failed', 'expired']) {
        await run(`insert into deferred_transactions (id, status, holder_keys, ${columns})
          select '${status}', '${status}', ${KEYS}, ${columns} from deferred_transactions where id = '${ids.deferred}'`);
      }
    });

    const service = await start();
    const answer = await service.call('GET', '/issuer/deferred', { token });
    const kept = answer.body.map(
      ({ transactionId, holderKeys }: { transactionId: string; holderKeys: object[] }) => [
        transactionId,
        holderKeys.length,
      ],
    );
    expect(new Map(kept)).to.deep.equal(
      new Map([[ids.deferred, 1], ...['retrieved', 'failed', 'expired'].map((id) => [id, 0] as const)]),
    );
  });
});
