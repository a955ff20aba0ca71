import type { Environment } from '../../config/configuration-files/placeholders.ts';
import type { Settings } from '../../config/settings.ts';
import { withMasterSecrets } from '../start/master-secrets.ts';
import { currentRelease } from '../wiring/release.ts';
import { checkAddress } from './address-check.ts';
import { checkDatabase } from './database-check.ts';
import { checkDefaults } from './defaults-check.ts';
import { checkEgress } from './egress-check.ts';
import { type Finding, made, ok } from './finding.ts';
import { checkBackups, checkMachine } from './machine-check.ts';
import { checkSettings } from './settings-check.ts';
import { checkStored } from './stored-check.ts';

export type Examination = {
  /** Without what is outside of this machine. */
  readonly offline: boolean;
  /** Files or folders that backups are written to. */
  readonly backups: readonly string[];
};

/** All checks, one after the other; what cannot be looked at without another thing is left out. */
export async function examine(environment: Environment, examination: Examination): Promise<readonly Finding[]> {
  const { settings, isStarted, findings } = checkSettings(environment);
  const rest: Finding[] = settings === undefined ? [] : await examineWith(settings, isStarted, examination, environment);
  rest.push(...(await made('backup', async () => checkBackups(examination.backups), null)));
  const hidden = secretsOf(environment, settings);
  return [...findings, ...rest].map((finding) => withoutSecrets(finding, hidden));
}

async function examineWith(named: Settings, isStarted: boolean, { offline }: Examination, environment: Environment): Promise<Finding[]> {
  const { version, commit } = currentRelease();
  const findings: Finding[] = [
    ok('release', `this is release ${version}, commit ${commit ?? 'unknown'}`),
    ...(await made('machine', async () => checkMachine(named), null)),
    ...(await made('defaults', async () => checkDefaults(named), null)),
    ...(await made('configuration', async () => checkFolder(named.CONFIG_FOLDER, environment), null)),
  ];
  let isUsable = false;
  const looked = await made('database', async () => {
    const state = await checkDatabase(named, { isStarted });
    isUsable = state.isUsable;
    return state.findings;
  });
  findings.push(...looked);
  let tenantId: string | undefined;
  if (isUsable && isStarted) {
    const stored = await made('stored', async () => {
      const found = await checkStored(await withMasterSecrets(named));
      tenantId = found.tenantId;
      return found.findings;
    });
    findings.push(...stored);
  }
  if (offline || !isStarted) return findings;
  const published = { publicUrl: named.PUBLIC_URL, ...currentRelease(), tenantId };
  findings.push(
    ...(await made('egress', async () => checkEgress(await withMasterSecrets(named)))),
    ...(await made('address', () => checkAddress(published))),
  );
  return findings;
}

/** Short ones are no secrets, and would take words apart. */
const MIN_SECRET = 6;
const SECRET_NAMES = /SECRET|PASSWORD|TOKEN|PIN$|KEY$/;

/** What no message may hold, whoever wrote it: drivers and servers of others have words of their own. */
function secretsOf(environment: Environment, settings: Settings | undefined): readonly string[] {
  const named = Object.entries(environment).filter(([name]) => SECRET_NAMES.test(name) || settings?.KMS_SECRETS.includes(name) === true);
  const values = named.flatMap(([, value]) => (value ?? '').split(',').map((part) => part.trim()));
  for (const name of ['DATABASE_URL', 'DATABASE_MIGRATION_URL', 'AMQP_URL']) {
    const address = environment[name] ?? '';
    if (!URL.canParse(address)) continue;
    const { password } = new URL(address);
    values.push(password, decoded(password));
  }
  const own = settings === undefined ? [] : [...settings.MASTER_SECRET, settings.AUTH_CLIENT_SECRET];
  return [...new Set([...values, ...own])].filter((value) => value.length >= MIN_SECRET && !value.startsWith('vault:'));
}

function withoutSecrets(finding: Finding, secrets: readonly string[]): Finding {
  const clean = (text: string) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '…'), text);
  const { advice, message } = finding;
  return { ...finding, message: clean(message), ...(advice === undefined ? {} : { advice: clean(advice) }) };
}

/** A text that is not percent-encoded is returned as it is: a setting with it is invalid, and its secret is hidden all the same. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Loaded when there is a folder: it needs all rules of the administration. */
async function checkFolder(folder: string | undefined, environment: Environment): Promise<readonly Finding[]> {
  if (folder === undefined) return [];
  const { checkConfigurationFolder } = await import('./folder-check.ts');
  return checkConfigurationFolder(folder, environment);
}
