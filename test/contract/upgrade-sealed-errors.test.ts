import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { rawSql } from '../support/databases.ts';
import { populate } from '../support/populated.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const BEFORE = 'Migration00000000000006_removed_clients';
const NAME = 'Wilhelmina Unmistakable';
const PLAIN = `no record of ${NAME}. `.repeat(25);

describeUpgrade('A database with plain errors of deferred transactions', (upgrade) => {
  it('forgets them, and shows the transactions without', async () => {
    const { kind, url, start, goBack } = upgrade();
    const older = await start();
    const { token, ids } = await populate(older, 'acme');
    const path = `/issuer/deferred/${ids.deferred}`;
    const json = { errorMessage: 'nobody' };
    expect((await older.call('POST', `${path}/fail`, { token, json })).status).to.equal(200);
    await older.close();
    await goBack(BEFORE);
    await rawSql(url, (run) => run(`update deferred_transactions set error_message = '${PLAIN}'`));

    const service = await start();
    const answer = await service.call('GET', path, { token });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body).to.include({ status: 'failed' }).and.to.not.have.property('errorMessage');
    expect((await service.call('GET', '/issuer/deferred', { token })).status).to.equal(200);
    const select = 'select count(*) as plain from deferred_transactions where error_message is not null';
    expect(Number((await rawSql(url, (run) => run(select)))[0]?.['plain'])).to.equal(0);
    if (kind !== 'sqlite') return;
    await service.close();
    const file = url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes(ids.deferred), 'this is the right file').to.equal(true);
    expect(bytes.includes(NAME)).to.equal(false);
  });
});
