import 'reflect-metadata';
import { examine } from '../doctor/examine.ts';
import type { Finding, Outcome } from '../doctor/finding.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npm run doctor -- [--json] [--strict] [--offline] [--backup <file or folder>]…`: checks what an operator can configure wrongly, with
 * the settings of the service. The service may run meanwhile, and has to run for the check of its address. The command only reads. It
 * ends with 0 when there is no fault, with 2 when there is a fault, and with `--strict` with 1 when there is a warning.
 */
const USAGE = 'npm run doctor -- [--json] [--strict] [--offline] [--backup <file or folder>]…';
const SIGNS: Readonly<Record<Outcome, string>> = { ok: 'ok     ', warning: 'WARNING', fault: 'FAULT  ' };

const flag = { type: 'boolean', default: false } as const;
const { values, positionals } = commandLine(USAGE, {
  allowPositionals: true,
  options: { json: flag, strict: flag, offline: flag, backup: { type: 'string', multiple: true } },
});
if (positionals.length > 0) endWithUsage(USAGE, 'it only accepts options');
const findings = await examine(process.env, { offline: values.offline, backups: values.backup ?? [] });
const count = (outcome: Outcome) => findings.filter((finding) => finding.outcome === outcome).length;
const [faults, warnings] = [count('fault'), count('warning')];
if (values.json) console.log(JSON.stringify({ faults, warnings, findings }, null, 2));
else {
  for (const finding of findings) console.log(describe(finding));
  console.log(`${faults} faults, ${warnings} warnings`);
}
process.exitCode = faults > 0 ? 2 : values.strict && warnings > 0 ? 1 : 0;

function describe({ check, outcome, message, advice }: Finding): string {
  const line = `${SIGNS[outcome]} ${check}: ${message}`;
  return advice === undefined ? line : `${line}\n          ${advice}`;
}
