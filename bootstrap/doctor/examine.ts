import type { Environment } from '../../config/configuration-files/placeholders.ts';
import type { Settings } from '../../config/settings.ts';
import { withMasterSecrets } from '../start/master-secrets.ts';
import { currentRelease } from '../wiring/release.ts';
import { checkAddress } from './address-check.ts';
import { checkDatabase } from './database-check.ts';
import { checkDefaults } from './defaults-check.ts';
import { checkEgress } from './egress-check.ts';
import { type Finding, ok, runCheck } from './finding.ts';
import { checkBackups, checkMachine } from './machine-check.ts';
import { checkSettings } from './settings-check.ts';
import { checkStored } from './stored-check.ts';

export type Examination = {
  /** Skips the checks of systems outside of this machine. */
  readonly offline: boolean;
  /** Files or folders that contain backups. */
  readonly backups: readonly string[];
};

/** Runs all checks in turn. A check is skipped when something that it needs is not available. */
export async function examine(environment: Environment, examination: Examination): Promise<readonly Finding[]> {
  const { settings, isStarted, findings } = checkSettings(environment);
  const furtherFindings: Finding[] = settings === undefined ? [] : await examineWith(settings, isStarted, examination, environment);
  furtherFindings.push(...(await runCheck('backup', async () => checkBackups(examination.backups), null)));
  const hidden = secretsOf(environment, settings);
  return [...findings, ...furtherFindings].map((finding) => withoutSecrets(finding, hidden));
}

async function examineWith(settings: Settings, isStarted: boolean, { offline }: Examination, environment: Environment): Promise<Finding[]> {
  const { version, commit } = currentRelease();
  const findings: Finding[] = [
    ok('release', `this is release ${version}, commit ${commit ?? 'unknown'}`),
    ...(await runCheck('machine', async () => checkMachine(settings), null)),
    ...(await runCheck('defaults', async () => checkDefaults(settings), null)),
    ...(await runCheck('configuration', async () => checkFolder(settings.CONFIG_FOLDER, environment), null)),
  ];
  let isUsable = false;
  const databaseFindings = await runCheck('database', async () => {
    const state = await checkDatabase(settings, { isStarted });
    isUsable = state.isUsable;
    return state.findings;
  });
  findings.push(...databaseFindings);
  let tenantId: string | undefined;
  if (isUsable && isStarted) {
    const storedFindings = await runCheck('stored', async () => {
      const storedState = await checkStored(await withMasterSecrets(settings));
      tenantId = storedState.tenantId;
      return storedState.findings;
    });
    findings.push(...storedFindings);
  }
  if (offline || !isStarted) return findings;
  const publishedService = { publicUrl: settings.PUBLIC_URL, ...currentRelease(), tenantId };
  findings.push(
    ...(await runCheck('egress', async () => checkEgress(await withMasterSecrets(settings)))),
    ...(await runCheck('address', () => checkAddress(publishedService))),
  );
  return findings;
}

/** Shorter values are not secrets, and hiding them would damage words. */
const MIN_SECRET = 6;
const SECRET_NAMES = /SECRET|PASSWORD|TOKEN|PIN$|KEY$/;

/** @returns the texts that no message may contain: drivers and other servers can put them into their messages. */
function secretsOf(environment: Environment, settings: Settings | undefined): readonly string[] {
  const secretVariables = Object.entries(environment).filter(
    ([name]) => SECRET_NAMES.test(name) || settings?.KMS_SECRETS.includes(name) === true,
  );
  const values = secretVariables.flatMap(([, value]) => (value ?? '').split(',').map((part) => part.trim()));
  for (const name of ['DATABASE_URL', 'DATABASE_MIGRATION_URL', 'AMQP_URL']) {
    const address = environment[name] ?? '';
    if (!URL.canParse(address)) continue;
    const { password } = new URL(address);
    values.push(password, decoded(password));
  }
  const parsedSecrets = settings === undefined ? [] : [...settings.MASTER_SECRET, settings.AUTH_CLIENT_SECRET];
  return [...new Set([...values, ...parsedSecrets])].filter((value) => value.length >= MIN_SECRET && !value.startsWith('vault:'));
}

function withoutSecrets(finding: Finding, secrets: readonly string[]): Finding {
  const clean = (text: string) => secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, '…'), text);
  const { advice, message } = finding;
  return { ...finding, message: clean(message), ...(advice === undefined ? {} : { advice: clean(advice) }) };
}

/** @returns a text that is not percent-encoded unchanged. A setting that contains it is invalid, and its secret is hidden as well. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The check is loaded only for a folder, because it needs all rules of the administration. */
async function checkFolder(folder: string | undefined, environment: Environment): Promise<readonly Finding[]> {
  if (folder === undefined) return [];
  const { checkConfigurationFolder } = await import('./folder-check.ts');
  return checkConfigurationFolder(folder, environment);
}
