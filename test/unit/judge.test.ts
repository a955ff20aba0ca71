import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect } from 'chai';
import { explain } from '../demo/narrator.ts';
import { readOptions as readDemoOptions } from '../demo/options.ts';
import { EXPECTED, findExpected, unexplained } from '../judge/expected.ts';
import { FLOWS, forbids } from '../judge/flows.ts';
import { readOptions, UsageFault } from '../judge/options.ts';
import { PAGE, withVerdicts } from '../judge/page.ts';
import { errorReason, type Row, withTimeout } from '../judge/verdict.ts';

const ROOT = new URL('../../', import.meta.url);
const MIN_REASON = 40;

const [first] = EXPECTED;
const failedRow: Row = {
  ...{ tool: '@openid4vc', profile: 'eu', flow: FLOWS.deferred, format: 'dc+sd-jwt', result: 'fails' },
  detail: 'Error retrieving deferred credentials from the service "{\\"credentials\\":[{\\"credential\\":',
};

describe('results of external tools', () => {
  it('have a sentence and an existing test for each reason', () => {
    expect(first).to.not.equal(undefined);
    for (const { tool, reason, test } of EXPECTED) {
      expect(reason.length, tool).to.be.greaterThan(MIN_REASON);
      const [, file = '', title = ''] = /^(\S+\.test\.ts): (.+)$/.exec(test) ?? [];
      const path = new URL(`test/${file}`, ROOT);
      expect(file !== '' && existsSync(path), `${tool}: there is no file ${test}`).to.equal(true);
      expect(readFileSync(path, 'utf8'), tool).to.include(title);
    }
  });

  it('are explained by the detail of the same flow, and by nothing else', () => {
    expect(findExpected(failedRow)?.tool).to.equal('@openid4vc');
    const otherRows: Partial<Row>[] = [{ detail: 'the session is failed' }, { tool: 'Credo' }, { flow: FLOWS.batch }];
    for (const change of otherRows) expect(findExpected({ ...failedRow, ...change })).to.equal(undefined);
  });

  it('are faults of the service when they fail, and not when a tool lacks a feature or is missing', () => {
    const unknownFailure: Row = { ...failedRow, detail: 'something new' };
    expect(unexplained([failedRow, unknownFailure])).to.deep.equal([unknownFailure]);
    const harmlessResults = (['works', 'lacking', 'forbidden', 'missing'] as const).map((result) => ({ ...unknownFailure, result }));
    expect(unexplained(harmlessResults)).to.deep.equal([]);
  });

  it('are documented with every reason, and with no unlisted reason', () => {
    const page = readFileSync(new URL(PAGE, ROOT), 'utf8');
    expect(page).to.match(/\nJudged on \d{4}-\d\d-\d\d: \d+ works, \d+ FAILS/);
    expect(page).to.not.include('Not explained');
    const reasons = [...page.matchAll(/^(\d+)\. (\S+): (.+) Test: `(.+)`$/gm)];
    const expected = EXPECTED.map(({ tool, reason, test }) => [tool, `${reason}.`, test]);
    expect(reasons.map(([, , ...rest]) => rest)).to.have.deep.members(expected);
    const numbers = [...page.matchAll(/\| FAILS \((\d+)\)/g)].map(([, number]) => number);
    expect(new Set(numbers)).to.deep.equal(new Set(reasons.map(([, number]) => number)));
  });

  it('are listed by flow, profile and format, with the version of the tool', () => {
    const tool = { name: '@openid4vc', version: '9.9.9', about: 'packages' };
    const missingTool: Row = { tool: 'eudi-dev', flow: 'all', result: 'missing', detail: 'there is no program' };
    const absentTool = { name: 'eudi-dev', version: 'not had', about: 'a test wallet' };
    const page = readFileSync(new URL(PAGE, ROOT), 'utf8');
    const unexplained: Row = { ...failedRow, flow: FLOWS.batch, detail: 'new' };
    const { detail: _said, ...place } = failedRow;
    const works: Row = { ...place, profile: 'none', result: 'works' };
    const withNote: Row = { ...works, profile: 'haip', detail: 'with a note' };
    const rows: Row[] = [works, withNote, failedRow, unexplained, missingTool];
    const table = withVerdicts(page, { date: '2030-01-02', tools: [tool, absentTool], rows });
    expect(table).to.include('Judged on 2030-01-02: 2 works, 2 FAILS').and.include('| @openid4vc | 9.9.9 | packages |');
    expect(table).to.include('| deferred issuance | works |  | works \\* |  | FAILS (1) |  |');
    expect(table).to.include('\n- \\*: with a note\n');
    expect(table).to.include('| all | tool not had: there is no program |').and.include('**Not explained**: new');
    expect(table.split('<!-- verdicts')[0]).to.equal(page.split('<!-- verdicts')[0]);
  });

  it('are read with valid options', () => {
    expect(readOptions([], {})).to.include({ write: false, examples: 3, tools: undefined });
    const folder = tmpdir();
    const variable = { VIDIMUS_JUDGE_TOOLS: '/missing/tools' };
    expect(readOptions(['--tools', folder, '--write'], variable)).to.include({ tools: folder });
    const root = { VIDIMUS_JUDGE_CLIENT_ID: 'root', VIDIMUS_JUDGE_CLIENT_SECRET: 'secret' };
    const service = { address: 'https://issuer.example', clientId: 'root', secret: 'secret' };
    expect(readOptions(['--service', 'https://issuer.example/'], root)).to.deep.include({ service });
    expect(readOptions(['--help'], {})).to.equal('help');
  });

  it('name an invalid option', () => {
    const root = { VIDIMUS_JUDGE_CLIENT_ID: 'root', VIDIMUS_JUDGE_CLIENT_SECRET: 'secret' };
    const { VIDIMUS_JUDGE_CLIENT_ID } = root;
    const all = 'eudi-dev, @openid4vc, Credo, readers, Schemathesis';
    const cases: readonly [readonly string[], string, Record<string, string>?][] = [
      [['--write', '--only', 'Credo'], '--write takes all tools'],
      [['--other'], '--other is not known'],
      [['other'], "Unexpected argument 'other'"],
      [['--tools'], '--tools has no value'],
      [['--examples', '0'], '--examples is a number from 1 to 1000, not 0'],
      [['--examples', 'x'], '--examples is a number'],
      [['--only', 'credo'], `--only: there is no tool credo, but ${all}`],
      [['--tools', '/missing/tools'], '--tools: there is no folder /missing/tools'],
      [[], 'VIDIMUS_JUDGE_TOOLS: there is no folder /missing/tools', { VIDIMUS_JUDGE_TOOLS: '/missing/tools' }],
      [['--service', 'issuer'], '--service: issuer is no URL', root],
      [['--service', 'ftp://issuer.example'], 'is no URL', root],
      [['--service', 'https://issuer.example'], 'VIDIMUS_JUDGE_CLIENT_ID is not set'],
      [['--service', 'https://x.example'], 'CLIENT_SECRET is not set', { VIDIMUS_JUDGE_CLIENT_ID }],
    ];
    for (const [input, expected, environment = {}] of cases)
      expect(() => readOptions(input, environment), input.join(' ')).to.throw(UsageFault, expected);
  });

  it('contain the message of a service, regardless of the surrounding output', () => {
    const path = 'claimsWebhook.url';
    const message = `${'is at an address that is called by nobody, '.repeat(5)}see OUTBOUND_ALLOW`;
    const problem = { type: 'https://x.example'.repeat(20), title: 'Bad', errors: [{ path, message }] };
    const error = new Error(`POST /issuer/credentials answered 400: ${JSON.stringify(problem)}`);
    expect(errorReason(error)).to.equal(`POST /issuer/credentials answered 400: ${path} ${message}`);
    expect(errorReason(new Error('GET / answered 500: {odd}'))).to.equal('GET / answered 500: {odd}');
  });

  it('are limited in time, and omit addresses', async () => {
    const timeout = await withTimeout(0.01, 'a flow', new Promise(() => {})).catch((error: Error) => error.message);
    expect(timeout).to.equal('a flow took longer than 0.01 s');
    const error = new Error("no answer\n from 'http://localhost:3000/judge-1/token'", { cause: new Error('why') });
    expect(errorReason(error)).to.equal('no answer from the service (why)');
  });

  it('omit flows that a profile forbids', () => {
    expect(forbids('none', 'plain')).to.equal(undefined);
    for (const profile of ['haip', 'eu'] as const) {
      expect(forbids(profile, 'plain')).to.include('HAIP');
      expect(forbids(profile, 'sameDevice')).to.equal(undefined);
    }
  });
});

describe('failed demo', () => {
  it('names an unknown option, and prints the help on request', () => {
    expect(readDemoOptions(['--eux'])).to.deep.equal({ fault: '--eux is not known' });
    expect(readDemoOptions(['--help'])).to.equal('help');
    expect(readDemoOptions(['--eu'])).to.deep.equal({ eu: true, keep: false, once: false });
  });

  it('explains the remedy for every error', () => {
    expect(explain(new Error('port 3000 is in use; set PORT to another one'))).to.include('set PORT to another one');
    expect(explain(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }))).to.include(
      'fetch failed (connect ECONNREFUSED)',
    );
    for (const error of ['odd', new Error('odd')]) expect(explain(error)).to.match(/^The demo failed: odd\nWhat to do: Run it again/);
  });
});
