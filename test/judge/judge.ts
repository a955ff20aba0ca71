/**
 * `npm run judge`: runs independent wallets, readers and tools against one running service, and prints a table of the
 * results. Exits with 1 only for a failure that `expected.ts` does not explain.
 */

import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import { Authorities } from '../demo/authorities.ts';
import { Backend } from '../support/backend.ts';
import { findExpected, unexplained } from './expected.ts';
import { type Options, readOptions, USAGE, UsageFault } from './options.ts';
import { type Judgement, PAGE, withVerdicts } from './page.ts';
import { type ServiceUnderTest, startService, useRunningService } from './service.ts';
import { SetUpFailure } from './tenant.ts';
import { selectTools } from './tools.ts';
import { describeRow, errorReason, RESULTS, type Row, type Tool } from './verdict.ts';

async function main(options: Options): Promise<boolean> {
  const { service: given } = options;
  const service = given === undefined ? await startService() : await useRunningService(given.address, given.clientId, given.secret);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void service.stop().then(() => process.exit(130)));
  try {
    const judgement = await judgeAll(service, options);
    if (options.write) write(judgement);
    return conclude(judgement.rows);
  } finally {
    await service.stop();
  }
}

async function judgeAll(service: ServiceUnderTest, options: Options): Promise<Judgement> {
  const authorities = await Authorities.start();
  const backend = await Backend.start();
  backend.on('/claims', { json: { deferred: true, interval: 1 } });
  const tools: Tool[] = [];
  const rows: Row[] = [];
  try {
    for (const judgeTool of selectTools(options)) {
      try {
        const judgeResult = await judgeTool.run({ service, authorities, backend: backend.url, tell: reportRow });
        tools.push(...judgeResult.tools);
        rows.push(...judgeResult.rows);
      } catch (error) {
        // A failed set-up says nothing about the service.
        const result = error instanceof SetUpFailure ? 'fails' : 'missing';
        const row: Row = { tool: judgeTool.name, flow: 'all', result, detail: errorReason(error) };
        reportRow(row);
        tools.push({ name: judgeTool.name, version: 'not had', about: judgeTool.about });
        rows.push(row);
      }
    }
  } finally {
    await Promise.allSettled([authorities.close(), backend.close()]);
  }
  return { date: new Date().toISOString().slice(0, 10), tools, rows };
}

function reportRow(row: Row): void {
  const detail = row.detail === undefined ? '' : `: ${row.detail}`;
  console.log(`${describeRow(row)}: ${RESULTS[row.result]}${detail}`);
  const expectedFailure = row.result === 'fails' ? findExpected(row) : undefined;
  if (expectedFailure !== undefined) console.log(`  known: ${expectedFailure.reason}`);
}

function write(judgement: Judgement): void {
  const file = new URL(`../../${PAGE}`, import.meta.url);
  writeFileSync(file, withVerdicts(readFileSync(file, 'utf8'), judgement));
}

/** @returns whether every verdict against the service has its reason. */
function conclude(rows: readonly Row[]): boolean {
  const against = rows.filter((row) => row.result === 'fails');
  const unexplainedRows = unexplained(rows);
  console.log(`\n${rows.length} verdicts, ${against.length} against the service, ${unexplainedRows.length} of them without a reason`);
  for (const row of unexplainedRows) console.log(`  ${describeRow(row)}: ${row.detail}`);
  return unexplainedRows.length === 0;
}

async function run(): Promise<number> {
  let options: ReturnType<typeof readOptions>;
  try {
    options = readOptions(process.argv.slice(2), process.env);
  } catch (error) {
    if (!(error instanceof UsageFault)) throw error;
    console.error(`${error.message}\n${USAGE}`);
    return 2;
  }
  if (options === 'help') {
    console.log(USAGE);
    return 0;
  }
  try {
    return (await main(options)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageFault)) throw error;
    console.error(error.message);
    return 2;
  }
}

process.exit(await run());
