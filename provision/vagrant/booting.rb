# frozen_string_literal: true

# Extends Vagrant and vagrant-libvirt for the Vagrantfile: reads the lab's definition, limits how many machines boot at a
# time, and adds deadlines with messages that say what to do.

require "json"
require "open3"
require "rexml/document"

module Minigts
  # The versions with which the steps below were tried. The steps use internal parts: if another version lacks one, the
  # step is left out with a warning.
  TRIED = { "vagrant" => %w[2.3.4 2.3.7], "vagrant-libvirt" => %w[0.11.2 0.12.2] }.freeze

  PROJECT = File.expand_path("../..", __dir__)
  PROGRAM = File.join(PROJECT, "minigts")

  # Shown by Vagrant as its message alone, without a backtrace.
  class Problem < Vagrant::Errors::VagrantError
    def initialize(message)
      @said = message
      super()
    end

    def error_message
      @said
    end
  end

  class << self
    def defined_by_caller?
      ENV.key?("MINIGTS_DEFINITION")
    end

    # The definition of the caller (minigts up), or that of the lab of Vagrant's machines or of TOPOLOGY. It is kept,
    # since Vagrant reads the Vagrantfile more than once.
    def definition
      @definition ||= JSON.parse(defined_by_caller? ? File.read(ENV["MINIGTS_DEFINITION"]) : asked)
    end

    # One of the definition's machines.
    def machine(name)
      definition["machines"].find { |one| one["name"] == name.to_s }
    end

    # Tells minigts that a verb of Vagrant has changed machines.
    def tell(verb)
      return if system(PROGRAM, "libvirt", verb, "--directory", directory)

      raise Problem, "The machines are as Vagrant says, and the lab is not configured: see above."
    end

    # Warns of a missing internal part only once, however many machines there are.
    def warn_of(lacking)
      @warned ||= []
      return if @warned.include?(lacking)

      @warned << lacking
      warn "minigts: this vagrant-libvirt has no #{lacking}; minigts was tried with vagrant " \
           "#{TRIED["vagrant"].join(", ")} and vagrant-libvirt #{TRIED["vagrant-libvirt"].join(", ")}. Going on without."
    end

    private

    # Runs minigts for the definition. Its messages are on the terminal already, so an error adds nothing.
    def asked
      topology = ENV["TOPOLOGY"].to_s
      words = topology.empty? ? [] : [File.expand_path(topology, PROJECT)]
      said, ended = Open3.capture2(PROGRAM, "libvirt", "definition", "--directory", directory, *start, "--", *words)
      exit(ended.exitstatus || 1) unless ended.success?

      said
    end

    # Options for verbs that start machines. The words after the verb may name machines; minigts ignores other words.
    def start
      verb, *words = ARGV.reject { |word| word.start_with?("-") }
      return [] unless %w[up reload].include?(verb)

      ["--start", *words.map { |word| "--machine=#{word}" }]
    end

    def directory
      chosen = ENV["VAGRANT_DOTFILE_PATH"].to_s
      File.expand_path(chosen.empty? ? ".vagrant" : chosen, PROJECT)
    end
  end

  # Limits how many machines boot at a time, since emulated ones that share a processor would exceed their deadlines.
  class InTurn
    @lock = Mutex.new

    class << self
      def turns(count)
        @lock.synchronize { @turns ||= SizedQueue.new(count).tap { |queue| count.times { queue << :turn } } }
      end

      attr_accessor :at_once
    end

    def initialize(app, _env)
      @app = app
      @turns = self.class.turns(self.class.at_once || 1)
    end

    # Runs the rest of the chain, which ends when the machine answers over SSH or has failed to.
    def call(env)
      turn = @turns.pop
      @app.call(env)
    ensure
      @turns << turn if turn
    end
  end

  # Changes a machine's definition before it starts, for settings that vagrant-libvirt lacks.
  class Domain
    class << self
      attr_accessor :translated_mib
    end

    def initialize(app, _env)
      @app = app
    end

    def call(env)
      amend(env[:machine])
      @app.call(env)
    end

    private

    def amend(machine)
      client = client_of(machine)
      return unless client

      domain = REXML::Document.new(client.lookup_domain_by_uuid(machine.id).xml_desc(1))
      before = domain.to_s
      limit_cache(domain)
      write_console(domain, Minigts.machine(machine.name)["console"])
      client.define_domain_xml(domain.to_s) unless domain.to_s == before
    end

    def client_of(machine)
      %i[provider driver connection client].reduce(machine) do |part, name|
        return Minigts.warn_of(name) unless part.respond_to?(name)

        part.public_send(name)
      end
    end

    # By default QEMU keeps a guest's translated code in a cache of 1 GiB for each machine, and uses all of it.
    # libvirt.org/formatdomain.html#hypervisor-features
    def limit_cache(domain)
      return unless self.class.translated_mib

      features = domain.elements["/domain/features"]
      return if features.elements["tcg"]

      features.add_element("tcg").add_element("tb-cache", "unit" => "MiB").text = self.class.translated_mib
    end

    # vagrant-libvirt puts a path into its XML unescaped. The file exists already and is the user's: without `append`
    # libvirt's log daemon would replace it by one that only root may read.
    # libvirt.org/formatdomain.html#consoles-serial-parallel-channel-devices
    def write_console(domain, path)
      %w[serial console].each do |kind|
        device = domain.elements["/domain/devices/#{kind}"]
        next if device.nil? || device.attributes["type"] == "file"

        device.add_attribute("type", "file")
        device.delete_element("source")
        device.add_element("source", "path" => path, "append" => "on")
      end
    end
  end

  # Waits for a machine's address with a deadline; vagrant-libvirt waits ten minutes and then shows a backtrace.
  class Deadline
    def initialize(app, _env)
      @app = app
    end

    def call(env)
      machine = env[:machine]
      limit = machine.config.vm.boot_timeout
      deadline = now + limit
      until env[:interrupted] || address(machine)
        raise Problem, explanation(machine, limit) if now > deadline

        sleep 0.5
      end
      @app.call(env)
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # The address; nil while there is none. True if this version cannot be asked: then vagrant-libvirt waits by itself.
    def address(machine)
      driver = machine.provider.driver
      return Minigts.warn_of(:get_ipaddress) || true unless driver.respond_to?(:get_ipaddress)

      driver.get_ipaddress
    rescue Fog::Errors::TimeoutError
      nil
    end

    def explanation(machine, limit)
      console = Minigts.machine(machine.name)["console"]
      "#{machine.name} got no address within #{limit} s. Its console is in #{console}: if that is empty, see " \
        "`minigts doctor`; if it has booted, the network #{machine.provider_config.management_network_name} gives no " \
        "addresses: see `virsh net-list --all`, and that no firewall stops DHCP on its bridge."
    end
  end

  # Has Vagrant run these before steps of vagrant-libvirt, if that plugin is installed.
  class Plugin < Vagrant.plugin("2")
    name "minigts"

    if defined?(VagrantPlugins::ProviderLibvirt::Action)
      steps = VagrantPlugins::ProviderLibvirt::Action
      { InTurn => :StartDomain, Domain => :StartDomain, Deadline => :WaitTillUp }.each do |ours, step|
        next Minigts.warn_of(step) unless steps.const_defined?(step)

        action_hook("minigts-#{ours.name}", steps.const_get(step)) { |hook| hook.before(steps.const_get(step), ours) }
      end
    end
  end
end
