import { createHmac, hkdfSync } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { populate } from '../support/populated.ts';
import { runProcess } from '../support/run-command.ts';
import { startTestService } from '../support/test-service.ts';

const FORMER = 'the secret that sealed everything so far';
const PRESENT = 'the secret that seals from now on 0123456';

/** Alters the actor of the newest entry of the tenant `other`, with codes made under a key of one's own. */
function forge(url: string, mac: (text: string) => string): Promise<void> {
  return rawSql(url, async (run) => {
    const rows = await run(
      `select * from audit_entries where tenant_id = 'other' order by sequence desc limit 2`,
    );
    const [last, before] = rows as Record<string, string>[];
    if (last === undefined || before === undefined) throw new Error('no entries');
    const { sequence, at, action, kind, target, detail } = last;
    const entry = [
      'vidimus audit entry 1',
      'other',
      Number(sequence),
      Number(at),
      'forged',
      action,
      kind,
      target,
      detail,
      before['hash'],
    ];
    const hash = mac(JSON.stringify(entry));
    const seal = mac(JSON.stringify(['vidimus audit head 1', 'other', Number(sequence), hash]));
    await run(
      `update audit_entries set actor = 'forged', hash = '${hash}' where tenant_id = 'other' and sequence = ${sequence}`,
    );
    await run(`update audit_heads set hash = '${hash}', seal = '${seal}' where tenant_id = 'other'`);
  });
}

for (const kind of databases()) {
  describe(`a former secret that somebody still has on ${kind.name}`, () => {
    let database: TestDatabase;
    beforeEach(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
    });
    afterEach(() => database?.drop());
    const start = (secrets: string) =>
      startTestService({ DATABASE_URL: database.url, MASTER_SECRET: secrets });
    const command = (name: string, secrets: string) =>
      runProcess(`commands/${name}`, [], { DATABASE_URL: database.url, MASTER_SECRET: secrets });

    it('is not given up while a process seals under it, whichever order the command was given', async () => {
      const late = await start(`${FORMER},${PRESENT}`);
      await populate(late, 'acme');
      const refused = await command('reseal', `${PRESENT},${FORMER}`);
      expect(refused.code, refused.stdout).to.equal(1);
      expect(refused.stderr).to.match(/still being sealed under a former secret/);
      const outcome = await start(PRESENT).then(
        async (service) => service.close().then(() => 'started'),
        () => 'refused',
      );
      expect(outcome, 'a start without it').to.equal('refused');
      await late.close();
      const done = await command('reseal', `${PRESENT},${FORMER}`);
      expect(done.code, done.stderr).to.equal(0);
      await (await start(PRESENT)).close();
    });

    it('forges no entry of the audit log that the present one wrote', async () => {
      const first = await start(FORMER);
      await populate(first, 'acme');
      await first.close();
      expect((await command('reseal', `${PRESENT},${FORMER}`)).code).to.equal(0);
      const second = await start(PRESENT);
      await populate(second, 'other');
      await second.close();
      expect((await command('audit-verify', PRESENT)).code).to.equal(0);
      // Who found the former secret, and may write to the database, alters the newest entry of a tenant made since.
      const [id] = new MasterCipher({ masterSecrets: [FORMER] }).keyIds;
      const root = Buffer.from(hkdfSync('sha256', FORMER, Buffer.alloc(0), 'vidimus/mac', 32));
      const key = Buffer.from(hkdfSync('sha256', root, '', AUDIT_LOG, 32));
      const mac = (text: string) => `${id}.${createHmac('sha256', key).update(text).digest('base64url')}`;
      await forge(database.url, mac);
      expect((await command('audit-verify', PRESENT)).code).to.equal(1);
    });
  });
}
