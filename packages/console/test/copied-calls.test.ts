import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { asCurl, asTypeScript, type RecordedCall } from '../src/api/made.ts';

const ORIGIN = 'https://id.example';
/** What a browser leaves as it is in a part of an address, and what stands in a body. */
const STRANGE = "it's'*(x)!~";

describe('Calls that are copied from the console', () => {
  const call: RecordedCall = {
    method: 'POST',
    address: `/session/${encodeURIComponent(`${STRANGE};touch /tmp/x $(id)`)}`,
    body: { name: `${STRANGE}"$(id)\`id\`\n` },
    isAuthorized: true,
    status: 200,
    ms: 1,
  };

  it('are one command of a shell, whatever an address or a body contains', () => {
    const words = spawnSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${asCurl(call, ORIGIN)}`], { env: { TOKEN: 'secret' } });
    expect(words.stderr.toString()).to.equal('');
    const given = words.stdout.toString().split('\0').slice(0, -1);
    expect(given)
      .to.include(ORIGIN + call.address)
      .and.to.include(JSON.stringify(call.body));
    expect(given).to.include('Authorization: Bearer secret');
    expect(given).to.have.length(10);
  });

  it('are one call of a program', () => {
    const calls: unknown[] = [];
    const run = new Function('fetch', 'token', `return (async () => { ${asTypeScript(call, ORIGIN)} })();`);
    return run(async (...given: unknown[]) => {
      calls.push(given);
      return { json: async () => ({}) };
    }, 'secret').then(() => {
      const body = JSON.stringify(call.body);
      const headers = { Authorization: 'Bearer secret', 'Content-Type': 'application/json' };
      expect(calls).to.deep.equal([[ORIGIN + call.address, { method: 'POST', headers, body }]]);
    });
  });
});
