import { writeFileSync } from 'node:fs';
import { Canary } from './core/canary.ts';
import type { Family } from './core/case.ts';
import { Gate, RefusedAddress } from './core/gate.ts';
import { HttpClient } from './core/http.ts';
import { type Options, readOptions, USAGE } from './core/options.ts';
import { describeOpenCases, exitCodeOf, progressOf, summarize, tableOf } from './core/report.ts';
import { type FamilyResult, runFamily } from './core/run.ts';
import { issuerFamilies, verifierFamilies } from './families/all.ts';
import { openTargets } from './targets/open.ts';

/** `npx vidimus attack`: runs attacks on an issuer or a verifier, and exits with 0, 1 or 2. */
async function attack(options: Options): Promise<number> {
  const http = new HttpClient(new Gate(options['i-operate-this']));
  const canary = await Canary.start();
  try {
    const { issuer, verifier } = await openTargets(http, canary, options);
    const results: FamilyResult[] = [];
    const runAll = async <World>(families: readonly Family<World>[], world: World | undefined) => {
      if (world === undefined) return;
      for (const family of families) {
        if (options.only.length > 0 && !options.only.includes(family.id)) continue;
        const result = await runFamily(family, world);
        results.push(result);
        console.error(progressOf(result));
      }
    };
    await runAll(issuerFamilies, issuer);
    await runAll(verifierFamilies, verifier);
    const summary = summarize(results);
    console.log(tableOf(results));
    const open = describeOpenCases(results);
    if (open !== '') console.log(`\n${open}`);
    const { held, open: worked, unclear, skipped, notRun } = summary;
    console.log(`\n${held} held, ${worked} open, ${unclear} unclear, ${skipped} skipped, ${notRun} families not run, ${http.calls} calls`);
    if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ summary, families: results }, null, 2));
    return exitCodeOf(summary);
  } finally {
    canary.close();
    http.close();
  }
}

async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const families = [...issuerFamilies, ...verifierFamilies];
  if (options.list) {
    for (const { id, title, cases } of families) {
      console.log(`${id}: ${title}`);
      for (const { name, section } of cases) console.log(`  ${name} (${section})`);
    }
    return 0;
  }
  const unknown = options.only.filter((id) => !families.some((family) => family.id === id));
  if (unknown.length > 0) {
    console.error(`there is no family ${unknown.join(', ')}; --list names them`);
    return 2;
  }
  try {
    return await attack(options);
  } catch (error) {
    const prefix = error instanceof RefusedAddress ? 'refused: ' : 'could not run: ';
    console.error(prefix + (error as Error).message);
    return 2;
  }
}

process.exitCode = await main(process.argv.slice(2));
