import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { explain } from '../demo/explain.ts';
import { EXPECTED, expectedOf, unexplained } from '../judge/expected.ts';
import { FLOWS, forbids } from '../judge/flows.ts';
import { readOptions } from '../judge/options.ts';
import { PAGE, withVerdicts } from '../judge/page.ts';
import { type Row, reasonOf, within } from '../judge/verdict.ts';

const ROOT = new URL('../../', import.meta.url);
const MIN_REASON = 40;

const [first] = EXPECTED;
const failed: Row = {
  ...{ tool: '@openid4vc', profile: 'eu', flow: FLOWS.deferred, format: 'dc+sd-jwt', result: 'fails' },
  detail: 'Error retrieving deferred credentials from the service "{\\"credentials\\":[{\\"credential\\":',
};

describe('What others say of the service', () => {
  it('has for each reason a sentence and a test that there is', () => {
    expect(first).to.not.equal(undefined);
    for (const { tool, reason, test } of EXPECTED) {
      expect(reason.length, tool).to.be.greaterThan(MIN_REASON);
      const [, file = '', title = ''] = /^(\S+\.test\.ts): (.+)$/.exec(test) ?? [];
      const path = new URL(`test/${file}`, ROOT);
      expect(file !== '' && existsSync(path), `${tool}: there is no file ${test}`).to.equal(true);
      expect(readFileSync(path, 'utf8'), tool).to.include(title);
    }
  });

  it('is explained by what it says at its place, and by nothing else', () => {
    expect(expectedOf(failed)?.tool).to.equal('@openid4vc');
    const others: Partial<Row>[] = [
      { detail: 'the session is failed' },
      { tool: 'Credo' },
      { flow: FLOWS.batch },
    ];
    for (const change of others) expect(expectedOf({ ...failed, ...change })).to.equal(undefined);
  });

  it('is against the service when it fails, and not when a tool lacks something or is not there', () => {
    const strange: Row = { ...failed, detail: 'something new' };
    expect(unexplained([failed, strange])).to.deep.equal([strange]);
    const harmless = (['works', 'lacking', 'forbidden', 'missing'] as const).map((result) => ({
      ...strange,
      result,
    }));
    expect(unexplained(harmless)).to.deep.equal([]);
  });

  it('stands in the document with every reason, and with none that is not listed', () => {
    const page = readFileSync(new URL(PAGE, ROOT), 'utf8');
    expect(page).to.match(/\nJudged on \d{4}-\d\d-\d\d: \d+ works, \d+ FAILS/);
    expect(page).to.not.include('Not explained');
    const reasons = [...page.matchAll(/^(\d+)\. (\S+): (.+) Our test: `(.+)`$/gm)];
    const listed = EXPECTED.map(({ tool, reason, test }) => [tool, `${reason}.`, test]);
    expect(reasons.map(([, , ...rest]) => rest)).to.have.deep.members(listed);
    const numbers = [...page.matchAll(/\| FAILS \((\d+)\)/g)].map(([, number]) => number);
    expect(new Set(numbers)).to.deep.equal(new Set(reasons.map(([, number]) => number)));
  });

  it('is a table by flow, profile and format, with the version of the tool', () => {
    const tool = { name: '@openid4vc', version: '9.9.9', about: 'packages' };
    const gone: Row = { tool: 'eudi-dev', flow: 'all', result: 'missing', detail: 'there is no program' };
    const none = { name: 'eudi-dev', version: 'not had', about: 'a test wallet' };
    const page = readFileSync(new URL(PAGE, ROOT), 'utf8');
    const strange: Row = { ...failed, flow: FLOWS.batch, detail: 'new' };
    const { detail: _said, ...place } = failed;
    const works: Row = { ...place, profile: 'none', result: 'works' };
    const noted: Row = { ...works, profile: 'haip', detail: 'with a note' };
    const rows: Row[] = [works, noted, failed, strange, gone];
    const made = withVerdicts(page, { date: '2030-01-02', tools: [tool, none], rows });
    expect(made)
      .to.include('Judged on 2030-01-02: 2 works, 2 FAILS')
      .and.include('| @openid4vc | 9.9.9 | packages |');
    expect(made).to.include('| deferred issuance | works |  | works \\* |  | FAILS (1) |  |');
    expect(made).to.include('\n- \\*: with a note\n');
    expect(made)
      .to.include('| all | tool not had: there is no program |')
      .and.include('**Not explained**: new');
    expect(made.split('<!-- verdicts')[0]).to.equal(page.split('<!-- verdicts')[0]);
  });

  it('is asked for in ways that there are', () => {
    expect(readOptions([], {})).to.include({ write: false, examples: 3, tools: undefined });
    expect(readOptions(['--tools', '/a', '--write'], { VIDIMUS_JUDGE_TOOLS: '/b' })).to.include({
      tools: '/a',
    });
    const root = { VIDIMUS_JUDGE_CLIENT_ID: 'root', VIDIMUS_JUDGE_CLIENT_SECRET: 'secret' };
    const { service } = readOptions(['--service', 'https://issuer.example/'], root) ?? {};
    expect(service).to.deep.equal({ address: 'https://issuer.example', clientId: 'root', secret: 'secret' });
    for (const given of [
      ['--write', '--only', 'Credo'],
      ['--other'],
      ['--examples', '0'],
      ['--examples', 'x'],
      ['--service', 'https://issuer.example'],
    ])
      expect(readOptions(given, {}), given.join(' ')).to.equal(undefined);
  });

  it('takes no longer than it may, and names no addresses', async () => {
    const late = await within(0.01, 'a flow', new Promise(() => {})).catch((error: Error) => error.message);
    expect(late).to.equal('a flow took longer than 0.01 s');
    const error = new Error("no answer\n from 'http://localhost:3000/judge-1/token'", {
      cause: new Error('why'),
    });
    expect(reasonOf(error)).to.equal('no answer from the service (why)');
  });

  it('leaves out what a profile does not allow', () => {
    expect(forbids('none', 'plain')).to.equal(undefined);
    for (const profile of ['haip', 'eu'] as const) {
      expect(forbids(profile, 'plain')).to.include('HAIP');
      expect(forbids(profile, 'sameDevice')).to.equal(undefined);
    }
  });
});

describe('A demo that fails', () => {
  it('says what to do, whatever it was', () => {
    expect(explain(new Error('port 3000 is taken; set PORT to another one'))).to.include('or set PORT');
    expect(explain(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }))).to.include(
      'fetch failed (connect ECONNREFUSED)',
    );
    for (const error of ['odd', new Error('odd')])
      expect(explain(error)).to.match(/^The demo failed: odd\nWhat to do: Run it again/);
  });
});
