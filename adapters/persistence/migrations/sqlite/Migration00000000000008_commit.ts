import { Migration } from '../migration.ts';

/** A revision for each kind of what is configured of a tenant. */
export class Migration00000000000008_commit extends Migration {
  readonly name = 'Migration00000000000008_commit';

  up(): void {
    this.addSql(`alter table \`tenants\` add column \`revisions\` text not null default '${NO_REVISIONS}';`);
  }
}

const NO_REVISIONS =
  '{"all":0,"tenant":0,"clients":0,"issuance":0,"credentials":0,"presentations":0,"keyChains":0,"registrar":0,' +
  '"registrationCertificates":0,"statusLists":0,"trustLists":0}';
