/**
 * `npm run demo`: the whole service in one command. Starts Vidimus on its embedded defaults, makes a tenant from
 * `config/examples/demo`, and lets an independent wallet receive, present and lose a credential. `-- --eu` does it under the
 * profile `eu`, with everything that a European wallet has around it. Ends with 0 only if everything really happened.
 * In a terminal, or with `-- --keep`, the service stays and a link leads to a playground in the browser.
 */

import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBackend } from './backend.ts';
import { EU_HEADLINE, tellEuropeanStory } from './eu-story.ts';
import { explain, fact, headline, printDone, step } from './narrator.ts';
import { type Options, readOptions, USAGE } from './options.ts';
import { freePort, startProcess } from './process.ts';
import { tellStory } from './story.ts';
import { createTenant } from './tenant.ts';

async function main({ keep: isKept, once, eu }: Options): Promise<void> {
  // In a terminal the demo stays open; in a pipe it ends.
  const keep = isKept || (process.stdout.isTTY && !once);
  const startedAt = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-demo-'));
  const backend = await startBackend('demo-backend-key');
  // A service is where it is looked for, also one that only runs through.
  const configuredPort = Number(process.env['PORT'] ?? '');
  const port = configuredPort > 0 ? configuredPort : await freePort(createServer);
  const address = `http://localhost:${port}`;
  headline(eu ? EU_HEADLINE : 'Vidimus: a credential is issued, presented, verified and revoked');
  step('Starting the service on its embedded defaults (SQLite, local sealed keys, generated secrets)');
  const service = await startProcess({
    address,
    environment: { PORT: String(port), DATA_FOLDER: folder, OUTBOUND_ALLOW: '127.0.0.1/32', LOG_LEVEL: 'warn' },
  });
  const also: (() => Promise<void>)[] = [];
  let isEnded = false;
  const stop = async () => {
    if (isEnded) return;
    isEnded = true;
    await service.stop();
    await backend.close();
    for (const stops of also) await stops();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    fact('address', address);
    const tenant = eu
      ? await tellEuropeanStory({ address, root: service.root, backend, onStop: (stops) => also.push(stops) })
      : await createTenant(address, service.root, backend);
    if (!eu) await tellStory(tenant, backend);
    printDone(`Everything happened, in ${((performance.now() - startedAt) / 1000).toFixed(1)} seconds.`);
    if (!keep) {
      fact('see it yourself', 'in a terminal, or with --keep, the service stays and prints a link to a playground');
      return await stop();
    }
    headline('See it yourself: open this link, it logs you in. Stop everything with Ctrl+C.');
    fact('playground', (await service.consoleLink()).replace('#', '#try?'));
    fact('address', address);
    fact('API reference', `${address}/docs`);
    fact('tenant client', `${tenant.clientId} / ${tenant.secret}`);
    fact('root client', `${service.root.clientId} / ${service.root.secret}`);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(0)));
  } catch (error) {
    await stop();
    throw error;
  }
}

const options = readOptions(process.argv.slice(2));
if (options === 'help') console.log(USAGE);
else if ('fault' in options) {
  console.error(`${options.fault}\n${USAGE}`);
  process.exitCode = 2;
} else
  await main(options).catch((error: unknown) => {
    console.error(`\n${explain(error)}`);
    process.exitCode = 1;
    process.exit();
  });
