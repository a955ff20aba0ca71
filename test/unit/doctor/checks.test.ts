import { expect } from 'chai';
import { useFakeTimers } from 'sinon';
import { checkClock } from '../../../bootstrap/doctor/database-check.ts';
import { checkDefaults } from '../../../bootstrap/doctor/defaults-check.ts';
import { daysUntil, type Finding, ok, runCheck } from '../../../bootstrap/doctor/finding.ts';
import { checkMachine, type Machine } from '../../../bootstrap/doctor/machine-check.ts';
import { checkSettings } from '../../../bootstrap/doctor/settings-check.ts';
import { endingFindings } from '../../../bootstrap/doctor/stored-check.ts';
import { readSettings } from '../../../config/settings.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const inDays = (days: number) => new Date(NOW.getTime() + days * 86_400_000);
const VALID = {
  NODE_ENV: 'production',
  PUBLIC_URL: 'https://id.acme.example',
  TRUST_PROXY: '1',
  MASTER_SECRET: 'a master secret that is only for tests 0123456789',
  AUTH_CLIENT_ID: 'root',
  AUTH_CLIENT_SECRET: 'secret-of-the-operator',
  DATA_FOLDER: '/nowhere/at/all',
  DATABASE_URL: 'postgres://vidimus:hidden-word@127.0.0.1:5432/vidimus',
};
const summary = (findings: readonly Finding[]) => findings.map(({ outcome, message }) => `${outcome}: ${message}`).join('\n');

describe('doctor: defaults', () => {
  const defaultFindings = (changes: Record<string, string>) => checkDefaults(readSettings({ ...VALID, ...changes }));

  it('reports nothing about a production setup', () => {
    expect(defaultFindings({}).map(({ outcome }) => outcome)).to.deep.equal(['ok']);
  });

  it('reports nothing about a development setup', () => {
    const { PUBLIC_URL: _address, NODE_ENV: _mode, DATABASE_URL: _database, ...rest } = VALID;
    expect(checkDefaults(readSettings(rest)).map(({ outcome }) => outcome)).to.deep.equal(['ok']);
  });

  for (const [description, changes, text] of [
    ['no proxy is trusted', { TRUST_PROXY: 'false' }, 'TRUST_PROXY is false'],
    ['the mode is another one', { NODE_ENV: 'development' }, 'NODE_ENV is not production'],
    ['an address is http', { NODE_ENV: 'development', PUBLIC_URL: 'http://id.acme.example' }, 'is http'],
    ['it is only reachable locally', { PUBLIC_URL: 'https://localhost' }, 'no wallet can reach'],
    ['the database is read along', { DATABASE_URL: 'postgres://u:hidden-word@db.acme.example/v' }, 'db.acme.example'],
    ['the broker is read along', { AMQP_URL: 'amqp://u:hidden-word@mq.acme.example' }, 'mq.acme.example'],
    ['everything may be called', { OUTBOUND_ALLOW: '0.0.0.0/0' }, 'OUTBOUND_ALLOW has 0.0.0.0/0'],
    ['nothing is limited', { RATE_LIMIT_TOKEN: '0' }, 'RATE_LIMIT_TOKEN is 0'],
    ['nothing is logged', { LOG_LEVEL: 'silent' }, 'LOG_LEVEL is silent'],
  ] as const) {
    it(`warns when ${description}`, () => {
      const findings = defaultFindings(changes);
      const matching = findings.filter(({ message }) => message.includes(text));
      expect(matching, summary(findings)).to.have.length(1);
      expect(matching[0]?.outcome).to.equal('warning');
      expect(matching[0]?.advice).to.be.a('string');
      expect(JSON.stringify(findings)).to.not.include('hidden-word');
    });
  }
});

describe('doctor: settings', () => {
  it('warns about an environment without settings', () => {
    const settingsFindings = (environment: Record<string, string>) =>
      checkSettings({ PATH: '/bin', ...environment }).findings.filter(({ message }) => message.includes('none is set in this environment'));
    expect(settingsFindings({}).map(({ outcome }) => outcome)).to.deep.equal(['warning']);
    expect(settingsFindings({ MASTER_SECRET: '' }).map(({ outcome }) => outcome)).to.deep.equal(['warning']);
    expect(settingsFindings({ PORT: '3000' })).to.deep.equal([]);
  });

  it('links to the page about key stores for invalid key stores, and to the page about settings otherwise', () => {
    const advice = (changes: Record<string, string>) =>
      checkSettings({ ...VALID, ...changes })
        .findings.map((finding) => finding.advice ?? '')
        .join();
    expect(advice({ KMS_CONFIG: '{' })).to.include('docs/reference/key-stores.md');
    expect(advice({ MASTER_SECRET: 'vault:house:vidimus' })).to.include('docs/reference/key-stores.md');
    expect(advice({ PORT: 'many' }))
      .to.include('docs/reference/settings.md')
      .and.not.to.include('key-stores');
  });
});

describe('doctor: machine', () => {
  const healthyMachine: Machine = {
    nodeVersion: '24.21.0',
    memoryMib: 4_096,
    heapMib: 2_048,
    filesLimit: 1_048_576,
    diskMib: () => 50_000,
    isWritable: () => true,
    volatileFileSystem: () => undefined,
  };
  const machineFindings = (machine: Partial<Machine>, changes: Record<string, string> = {}) =>
    checkMachine(readSettings({ ...VALID, DATABASE_URL: 'sqlite:/tmp/none.sqlite', ...changes }), { ...healthyMachine, ...machine });
  const outcomeOfCheck = (check: string, findings: readonly Finding[]) => findings.find((finding) => finding.check === check)?.outcome;

  it('accepts a sufficient machine', () => {
    expect(machineFindings({}).map(({ outcome }) => outcome)).to.deep.equal(['ok', 'ok', 'ok', 'ok']);
  });

  for (const [check, outcome, machine, changes] of [
    ['node', 'fault', { nodeVersion: '20.20.2' }, {}],
    ['node', 'fault', { nodeVersion: '24.6.0' }, {}],
    ['node', 'warning', { nodeVersion: '25.1.0' }, {}],
    ['memory', 'fault', { memoryMib: 256 }, {}],
    ['memory', 'warning', { memoryMib: 560 }, {}],
    ['memory', 'warning', { memoryMib: 65_536 }, { CACHE_MEMORY: '2000' }],
    ['memory', 'fault', {}, { WORKERS: '32', DATABASE_URL: VALID.DATABASE_URL }],
    ['open files', 'warning', { filesLimit: 1_024 }, {}],
    ['open files', 'ok', { filesLimit: 1_024 }, { MAX_CONNECTIONS: '500' }],
    ['open files', 'ok', { filesLimit: undefined }, {}],
    ['disk', 'fault', { diskMib: () => 20 }, {}],
    ['disk', 'warning', { diskMib: () => 1_000 }, {}],
    ['disk', 'fault', { isWritable: () => false }, {}],
    ['disk', 'ok', { diskMib: () => 20 }, { DATABASE_URL: VALID.DATABASE_URL }],
    ['disk', 'warning', { isWritable: () => false }, { DATABASE_URL: VALID.DATABASE_URL }],
    ['disk', 'warning', { volatileFileSystem: () => 'tmpfs' }, {}],
    ['disk', 'warning', { volatileFileSystem: () => 'overlay' }, { DATABASE_URL: VALID.DATABASE_URL }],
    ['disk', 'ok', { volatileFileSystem: () => 'overlay' }, { NODE_ENV: 'development' }],
  ] as const) {
    it(`reports ${outcome} of ${check} with ${JSON.stringify({ ...machine, ...changes })}`, () => {
      expect(outcomeOfCheck(check, machineFindings(machine, changes))).to.equal(outcome);
    });
  }
});

describe('doctor: time', () => {
  it('allows a difference of one minute between clocks, and reports the direction', () => {
    expect(checkClock(0, 60_000).outcome).to.equal('ok');
    expect(checkClock(0, 61_000).outcome).to.equal('fault');
    expect(checkClock(0, 61_000).message).to.include('61 seconds ahead of');
    expect(checkClock(61_000, 0).message).to.include('61 seconds behind');
  });

  it('counts whole days', () => {
    expect(daysUntil(inDays(2.9), NOW)).to.equal(2);
    expect(daysUntil(inDays(-2.9), NOW)).to.equal(-2);
  });

  const chain = (leafDays: number, rootDays: number | undefined, changes: Partial<KeyChain> = {}) =>
    ({
      id: 'signing',
      tenantId: 'acme',
      usages: ['signing'],
      rotationEnabled: false,
      active: { notAfter: inDays(leafDays) },
      ...(rootDays === undefined ? {} : { root: { notAfter: inDays(rootDays) } }),
      ...changes,
    }) as unknown as KeyChain;

  for (const [description, input, expected] of [
    ['nothing of one that lasts', chain(300, 3000), []],
    ['that a certificate ends soon', chain(29, 3000), ['warning']],
    ['nothing where it renews itself', chain(29, 3000, { rotationEnabled: true }), []],
    ['that one from outside ends, which nothing renews', chain(29, undefined, { rotationEnabled: true }), ['warning']],
    ['that one has ended, although it was to renew itself', chain(-1, 3000, { rotationEnabled: true }), ['fault']],
    ['that an authority ends', chain(300, 10), ['warning']],
    ['nothing of one that signs nothing', chain(-1, undefined, { usages: [] }), []],
  ] as const) {
    it(`reports ${description}`, () => {
      const findings = endingFindings(input, NOW);
      expect(findings.map(({ outcome }) => outcome)).to.deep.equal(expected);
      for (const { message } of findings) expect(message).to.include('"signing" of acme');
    });
  }

  it('escapes control characters in text from other systems', async () => {
    const [finding] = await runCheck('x', () => Promise.reject(new Error('\u001b[2J\u001b]0;ok\u0007 all\nFAULT\u202e')));
    expect(finding?.message).to.equal('could not be checked: ?[2J?]0;ok? all?FAULT?');
  });

  it('reports a check that throws as a fault, and continues', async () => {
    const [finding] = await runCheck('broker', () => Promise.reject(new Error('no way')));
    expect(finding).to.include({ check: 'broker', outcome: 'fault' });
    expect(finding?.message).to.include('no way');
  });

  it('aborts a check of another process after 20 seconds, and waits for one that only reads files', async () => {
    const timers = useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const afterAMinute = async () => {
        await new Promise((resolve) => setTimeout(resolve, 60_000));
        return [ok('x', 'done')];
      };
      const [brokerCheck, configurationCheck] = [runCheck('broker', afterAMinute), runCheck('configuration', afterAMinute, null)];
      await timers.tickAsync(60_000);
      expect((await brokerCheck)[0]?.message).to.include('no answer in time');
      expect((await configurationCheck)[0]?.message).to.equal('done');
    } finally {
      timers.restore();
    }
  });
});
