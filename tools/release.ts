import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const UNRELEASED = '## Unreleased';
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;

/** A release that cannot be created as requested. The message describes the remedy. */
export class ReleaseError extends Error {}

/** @throws ReleaseError unless `next` is a version `<major>.<minor>.<patch>` above `current`. */
export function assertNextVersion(nextVersion: string, current: string): void {
  const [, ...nextParts] = VERSION.exec(nextVersion) ?? [];
  const [, ...currentParts] = VERSION.exec(current) ?? [];
  if (nextParts.length === 0) throw new ReleaseError(`Version "${nextVersion}" is invalid. Give <major>.<minor>.<patch>, such as 0.3.0.`);
  const firstDifference = nextParts.findIndex((part, index) => part !== currentParts[index]);
  if (firstDifference === -1 || Number(nextParts[firstDifference]) < Number(currentParts[firstDifference]))
    throw new ReleaseError(`Version ${nextVersion} is not above the current version ${current}.`);
}

/**
 * Turns the section *Unreleased* into the section of a release, and leaves an empty *Unreleased* above it.
 * @param date as `2026-11-28`.
 * @throws ReleaseError when *Unreleased* is missing or empty, or when a patch release would contain breaking changes.
 */
export function releaseChangelog(changelog: string, version: string, date: string): string {
  const start = changelog.indexOf(`${UNRELEASED}\n`);
  if (start === -1) throw new ReleaseError(`CHANGELOG.md has no section "${UNRELEASED}".`);
  const contentStart = start + UNRELEASED.length + 1;
  const nextSection = changelog.indexOf('\n## ', contentStart);
  const content = changelog.slice(contentStart, nextSection === -1 ? undefined : nextSection);
  if (content.trim() === '') throw new ReleaseError(`The section "${UNRELEASED}" of CHANGELOG.md is empty. Describe the changes first.`);
  if (/^### Breaking$/m.test(content) && !version.endsWith('.0'))
    throw new ReleaseError(`CHANGELOG.md lists breaking changes, and ${version} is a patch release. Raise the major or minor number.`);
  return `${changelog.slice(0, contentStart)}\n## ${version} (${date})\n${changelog.slice(contentStart)}`;
}

/**
 * @param manifest the text of a `package.json` or of `package-lock.json`.
 * @returns the text with a new version of the package, and in the lock file of its workspaces.
 */
export function withPackageVersion(manifest: string, version: string): string {
  const parsed = JSON.parse(manifest) as { version: string; packages?: Record<string, { version?: string }> };
  parsed.version = version;
  for (const [folder, workspace] of Object.entries(parsed.packages ?? {})) {
    if (folder === '' || /^packages\/[^/]+$/.test(folder)) workspace.version = version;
  }
  return `${JSON.stringify(parsed, undefined, 2)}\n`;
}

/** @returns the text of the Helm chart with its version and the version of the application replaced. */
export function withChartVersion(chart: string, version: string): string {
  return chart.replace(/^version: .*$/m, `version: ${version}`).replace(/^appVersion: .*$/m, `appVersion: ${version}`);
}

/** Stores the API document, whose requests the next releases have to accept. @returns the folder, relative to the root. */
async function writeFixture(root: URL, version: string): Promise<string> {
  const folder = `test/fixtures/releases/${version}`;
  mkdirSync(new URL(folder, root), { recursive: true });
  const { exactApiDocument } = await import('./api-document.ts');
  writeFileSync(new URL(`${folder}/openapi.json.gz`, root), gzipSync(await exactApiDocument(), { level: 9 }));
  return folder;
}

/** `npm run release -- 0.3.0`: sets the version, writes the section of the changelog and the API document, and prints the next steps. */
async function release(root: URL, version: string): Promise<void> {
  const pathOf = (file: string) => new URL(file, root);
  const read = (file: string) => readFileSync(pathOf(file), 'utf8');
  const changes = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' });
  if (changes !== '') throw new ReleaseError(`Commit these changes first:\n${changes}`);
  assertNextVersion(version, (JSON.parse(read('package.json')) as { version: string }).version);
  const date = new Date().toISOString().slice(0, 10);
  const chart = 'deploy/helm/vidimus/Chart.yaml';
  const workspaces = globSync('packages/*/package.json', { cwd: root }).sort();
  // All texts are generated before the first one is written, so that an error leaves the files unchanged.
  const files = {
    'CHANGELOG.md': releaseChangelog(read('CHANGELOG.md'), version, date),
    'package.json': withPackageVersion(read('package.json'), version),
    'package-lock.json': withPackageVersion(read('package-lock.json'), version),
    ...Object.fromEntries(workspaces.map((file) => [file, withPackageVersion(read(file), version)])),
    [chart]: withChartVersion(read(chart), version),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(pathOf(file), text);
  const fixture = await writeFixture(root, version);
  console.log(`Version ${version} is written to ${Object.keys(files).join(', ')}, its API document to ${fixture}. Next:

  copy the newest config folder of test/fixtures/releases to ${fixture}/config, and add what is new
  git add ${fixture}
  git commit --all --message "release: publish ${version}"
  git tag v${version}`);
}

if (process.argv[1]?.endsWith('release.ts') === true) {
  try {
    const [version, ...furtherArguments] = process.argv.slice(2);
    if (version === undefined || furtherArguments.length > 0) throw new ReleaseError('Usage: npm run release -- <version>');
    await release(new URL('../', import.meta.url), version);
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
