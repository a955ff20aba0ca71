const NO_REVISIONS =
  '{"all":0,"tenant":0,"clients":0,"issuance":0,"credentials":0,"presentations":0,"keyChains":0,"registrar":0,' +
  '"registrationCertificates":0,"statusLists":0,"trustLists":0}';

/** A revision for each kind of what is configured of a tenant. */
export const statements = [`alter table \`tenants\` add column \`revisions\` text not null default '${NO_REVISIONS}';`];
