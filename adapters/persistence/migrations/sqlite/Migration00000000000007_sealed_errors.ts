import { Migration } from '../migration.ts';

export class Migration00000000000007_sealed_errors extends Migration {
  readonly name = 'Migration00000000000007_sealed_errors';

  up(): void {
    // No key is at hand to seal what was written before, and nobody but the operator was ever shown it. What is
    // erased is overwritten, which SQLite does not do by itself.
    this.addSql('pragma secure_delete = on;');
    this.addSql('update deferred_transactions set error_message = null where error_message is not null;');
    this.addSql('pragma secure_delete = off;');
  }
}
